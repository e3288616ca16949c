// A table in far memory, while everything else of the program stays as it is.
//
//   cc main.c $(pkg-config --cflags --libs hinterland-runtime)
//   HINTERLAND_LOCAL=16M ./a.out          three quarters of the table are far
#include <hinterland/region.h>
#include <string.h>

#include <stdio.h>

int main(void) {
  const struct hl_region_options options = {.share = HL_SHARE_COMMON, .rdahead = 16};
  struct hl_region region;
  int error = hl_region_create(&region, (size_t)64 << 20, &options);
  if (error != 0) {
    fprintf(stderr, "no region: %s (%s)\n", strerror(error), hl_region_error());
    return 1;
  }
  uint64_t* table = region.data;
  const size_t count = region.size / sizeof *table;
  for (size_t i = 0; i < count; ++i) {
    hl_seq_write(&table[i]);
    table[i] = i * i;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i += 4099) {
    hl_read(&table[i]);
    sum += table[i];
  }
  printf("%llu\n", (unsigned long long)sum);
  return hl_region_destroy(&region);
}
