// A library with hints of its own, for loading.c.
#include <stddef.h>

struct link {
  struct link* next;
  long value;
  char room[48];
};

__attribute__((visibility("default"))) long follow(const struct link* at) {
  long sum = 0;
  for (; at != NULL; at = at->next) sum = sum * 3 + at->value;
  return sum;
}
