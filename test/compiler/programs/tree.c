// A search tree and chains of a hash table: pointers that come from memory. Some 40 MiB; prints digests.
// Argument: by how much fewer of all.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  uint64_t key, value;
  struct node* child[2];
};
struct entry {
  struct entry* next;
  uint64_t key;
  char name[40];
};

static uint64_t random_number(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static uint64_t tree(int nodes, int lookups) {
  struct node* root = NULL;
  uint64_t state = 1, digest = 0;
  for (int i = 0; i < nodes; ++i) {
    const uint64_t key = random_number(&state);
    struct node** at = &root;
    while (*at != NULL) at = &(*at)->child[key > (*at)->key];
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
    (*at)->value = (uint64_t)i;
  }
  state = 1;
  for (int i = 0; i < lookups; ++i) {
    const uint64_t key = random_number(&state);
    const struct node* at = root;
    while (at != NULL && at->key != key) at = at->child[key > at->key];
    digest = digest * 31 + (at != NULL ? at->value : 7);
  }
  return digest;
}

static uint64_t table(int entries, int lookups) {
  const size_t buckets = 1 << 16;
  struct entry** heads = calloc(buckets, sizeof *heads);
  uint64_t state = 5, digest = 0;
  for (int i = 0; i < entries; ++i) {
    struct entry* made = malloc(sizeof *made);
    made->key = random_number(&state);
    snprintf(made->name, sizeof made->name, "entry number %d", i);
    made->next = heads[made->key % buckets];
    heads[made->key % buckets] = made;
  }
  state = 5;
  for (int i = 0; i < lookups; ++i) {
    const uint64_t key = random_number(&state);
    for (struct entry* at = heads[key % buckets]; at != NULL; at = at->next)
      if (at->key == key) {
        digest = digest * 31 + strlen(at->name) + (unsigned char)at->name[13];
        at->name[0]++;
      }
  }
  return digest;
}

int main(int count, char** arguments) {
  const int fewer = count > 1 ? atoi(arguments[1]) : 1;
  printf("tree %016llx\n", (unsigned long long)tree(100000 / fewer, 100000 / fewer));
  printf("table %016llx\n", (unsigned long long)table(300000 / fewer, 100000 / fewer));
  return 0;
}
