// What a hint costs where the page is there: test_instructions.py counts the instructions of these loops. Each ends
// with the access that the hint is about.
#include <hinterland/hint.h>

#define ACCESS(pointer) __asm__ volatile("" : : "r"(pointer))

void no_hint(char* const* pages, size_t count);
void resident_read(char* const* pages, size_t count);
void resident_write(char* const* pages, size_t count);
void same_page(char* const* pages, size_t count);

void no_hint(char* const* pages, size_t count) {
  for (size_t i = 0; i < count; ++i) ACCESS(pages[i]);
}
void resident_read(char* const* pages, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    hl_read(pages[i]);
    ACCESS(pages[i]);
  }
}
void resident_write(char* const* pages, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    hl_write(pages[i]);
    ACCESS(pages[i]);
  }
}
void same_page(char* const* pages, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    hl_seq_read(pages[i]);
    ACCESS(pages[i]);
  }
}
