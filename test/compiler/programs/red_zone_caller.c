// A leaf function with its variables below the stack pointer, into which the linker inlines steps(), which has hints
// (red_zone_callee.c). This file is compiled without the plug-in.
#include <stdio.h>
#include <stdlib.h>

struct node {
  struct node* next;
  long value;
  long rest[62];  // so that a node is an eighth of a page
};
long steps(struct node* node, long from);

__attribute__((noinline)) static long leaf(struct node* node, volatile long* seed) {
  volatile long local[12];
  for (int i = 0; i < 12; ++i) local[i] = seed[i & 3] + i;
  unsigned long sum = (unsigned long)steps(node, local[3]);
  for (int i = 0; i < 12; ++i) sum = sum * 31 + (unsigned long)local[i];
  return (long)sum;
}

int main(void) {
  enum { kNodes = 20000 };
  static struct node* all[kNodes];
  volatile long seed[4] = {1, 2, 3, 4};
  unsigned long sum = 0;
  for (long i = 0; i < kNodes; ++i) {
    all[i] = malloc(sizeof *all[i]);
    if (all[i] == NULL) return 1;
    all[i]->value = i;
  }
  for (long i = 0; i < kNodes; ++i) all[i]->next = all[i * 7919 % kNodes];
  for (long i = 0; i < kNodes; ++i) sum = sum * 3 + (unsigned long)leaf(all[i * 4999 % kNodes], seed);
  printf("%lu\n", sum);
  return 0;
}
