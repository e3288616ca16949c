/* Hash table of chains, as memcached has one: searched, and its items updated. chain ITEMS LOOKUPS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
  struct item* next;
  unsigned long key;
  unsigned hits : 24, flags : 8;
  char data[472];
};

static struct item** buckets;
static size_t bucket_count;

static size_t hash(unsigned long key) { return key * 0x9e3779b97f4a7c15u >> 20; }

__attribute__((noinline)) static struct item* find(unsigned long key) {
  struct item* it = buckets[hash(key) % bucket_count];
  while (it != NULL && it->key != key) it = it->next;
  return it;
}

__attribute__((noinline)) static unsigned long sum_of(const struct item* it) {
  unsigned long sum = 0;
  for (size_t i = 0; i < sizeof it->data; i += 64) sum += (unsigned char)it->data[i];
  return sum;
}

static void insert(unsigned long key) {
  struct item* it = calloc(1, sizeof *it);
  if (it == NULL) exit(3);
  it->key = key;
  memset(it->data, (int)(key % 251), sizeof it->data);
  struct item** bucket = &buckets[hash(key) % bucket_count];
  it->next = *bucket;
  *bucket = it;
}

int main(int count, char** arguments) {
  size_t items = count > 1 ? strtoul(arguments[1], NULL, 10) : 32768,
         lookups = count > 2 ? strtoul(arguments[2], NULL, 10) : 20000;
  bucket_count = items / 2 + 1;
  buckets = calloc(bucket_count, sizeof *buckets);
  if (buckets == NULL) return 3;
  for (size_t i = 0; i < items; ++i) insert(i * 7919 % items);
  unsigned long state = 1, sum = 0;
  for (size_t i = 0; i < lookups; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    struct item* it = find((state >> 33) % items);
    if (it == NULL) continue;
    sum += sum_of(it);
    if (i % 3 == 0) it->hits++;
  }
  printf("%lu\n", sum);
  return 0;
}
