// A program that registers something with printf, and whose runtime then has something to say on the path of a fault:
// its device is too small (HINTERLAND_TEST_FAR). libc's tables must not be far by then.
#include <printf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 48 << 20, kPage = 4096 };

static int print_yes(FILE* to, const struct printf_info* info, const void* const* arguments) {
  (void)info;
  return fprintf(to, *(const int*)arguments[0] ? "yes" : "no");
}

static int takes_one(const struct printf_info* info, size_t n, int* types, int* sizes) {
  (void)info;
  if (n > 0) {
    types[0] = PA_INT;
    sizes[0] = sizeof(int);
  }
  return 1;
}

int main(void) {
  if (register_printf_specifier('Y', print_yes, takes_one) != 0) return 2;
  char* memory = malloc(kBytes);
  for (int round = 1; round <= 3; ++round)
    for (size_t at = 0; at < kBytes; at += kPage) memset(memory + at, round + (int)(at / kPage), 64);
  size_t wrong = 0;
  for (size_t at = 0; at < kBytes; at += kPage) wrong += memory[at + 63] != (char)(3 + (int)(at / kPage));
  char text[64];
  const char* format = "%Y, wrong %zu";  // the compiler does not know %Y
  snprintf(text, sizeof text, format, 1, wrong);
  puts(text);
  free(memory);
  return 0;
}
