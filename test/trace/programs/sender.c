// Items of several hundred bytes in memory, sent at random by one system call each, with a head that lies elsewhere:
// what is touched stands in an array that the call is given.
//     sender ITEMS CALLS
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define ITEM 1400

static uint64_t send_all(int file, char* items, size_t count, size_t calls) {
  uint64_t random = 1, sent = 0;
  for (size_t i = 0; i < calls; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    char* item = items + (random >> 33) % count * ITEM;
    struct iovec parts[2] = {{.iov_base = &random, .iov_len = sizeof random}, {.iov_base = item, .iov_len = ITEM}};
    ssize_t bytes = pwritev(file, parts, 2, (off_t)(i % 64 * (ITEM + sizeof random)));
    if (bytes > 0) sent += (uint64_t)bytes;
  }
  return sent;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  size_t count = strtoul(argv[1], NULL, 10), calls = strtoul(argv[2], NULL, 10);
  char* items = malloc(count * ITEM);
  int file = memfd_create("sent", MFD_CLOEXEC);
  if (items == NULL || file < 0) return 1;
  for (size_t i = 0; i < count; ++i) memset(items + i * ITEM, (int)(i % 251), ITEM);
  uint64_t sent = send_all(file, items, count, calls), sum = 0;
  unsigned char back[64 * (ITEM + 8)];
  struct iovec all = {.iov_base = back, .iov_len = sizeof back};
  if (preadv(file, &all, 1, 0) != (ssize_t)sizeof back) return 1;
  for (size_t i = 0; i < sizeof back; ++i) sum = sum * 31 + back[i];
  printf("%llu %llu\n", (unsigned long long)sent, (unsigned long long)sum);
  free(items);
  return 0;
}
