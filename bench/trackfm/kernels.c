// Programs whose accesses no fault foresees, as small as they can be: kernels KERNEL MIB [TIMES].
// Each fills its memory, and then measures a number of look-ups, or TIMES as many, in processor time of the whole
// process, the runtime's threads included. Prints seconds and a digest of the results. With BY_HAND, hints as a
// person would write them.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#ifdef BY_HAND
#include "hinterland/hint.h"
#else
#define hl_read(address) ((void)0)
#define hl_write(address) ((void)0)
#endif

static uint64_t g_state = 88172645463325252u;
static uint64_t random_number(void) {
  g_state ^= g_state << 13;
  g_state ^= g_state >> 7;
  return g_state ^= g_state << 17;
}

// Modulo 2^64, of an odd number.
static uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void* taken(size_t count, size_t size) {
  void* memory = calloc(count, size);
  if (memory == NULL) {
    fprintf(stderr, "kernels: no memory for %zu bytes\n", count * size);
    exit(1);
  }
  return memory;
}

static int g_times = 1;
static double g_begin;
static void measure(void) { g_begin = cpu_seconds(); }
static int report(uint64_t digest) {
  printf("%.3f %016" PRIx64 "\n", cpu_seconds() - g_begin, digest);
  return 0;
}

// --- a search tree, its nodes anywhere in memory
struct node {
  uint64_t key, value;
  struct node* child[2];
};

static const struct node* find(const struct node* at, uint64_t key) {
  while (at != NULL) {
    hl_read(at);
    if (at->key == key) break;
    at = at->child[key > at->key];
  }
  return at;
}

// A balanced tree, filled in the order of memory, because filling is not what is measured. The node of rank r (from
// 1) lies at r * kSpread; its children are 2^(trailing zeros of r) / 2 below and above it.
static int tree(size_t bytes) {
  size_t ranks = 2;
  while (ranks * 2 * sizeof(struct node) <= bytes) ranks *= 2;
  const uint64_t spread = 0x9E3779B1, inverse = inverse_of(spread) % ranks;
  struct node* nodes = taken(ranks, sizeof *nodes);
  for (size_t place = 1; place < ranks; ++place) {
    const uint64_t rank = place * inverse % ranks, half = (rank & -rank) / 2;
    nodes[place] = (struct node){.key = 3 * rank, .value = rank};
    if (half == 0) continue;
    nodes[place].child[0] = &nodes[(rank - half) * spread % ranks];
    nodes[place].child[1] = &nodes[(rank + half) * spread % ranks];
  }
  const struct node* root = &nodes[ranks / 2 * spread % ranks];
  measure();
  uint64_t digest = 0;
  for (int i = 0; i < 20000 * g_times; ++i) {
    const struct node* found = find(root, random_number() % (3 * ranks));
    digest = digest * 31 + (found != NULL ? found->value : 7);
  }
  return report(digest);
}

// --- a hash table with open addressing
// Filled in the order of memory, every second slot; a key's place is key * kSpread.
static int hash(size_t bytes) {
  size_t slots = 2;
  while (slots * 32 <= bytes) slots *= 2;
  const uint64_t spread = 0x9E3779B1, inverse = inverse_of(spread) % slots;
  uint64_t* table = taken(slots, 16);
  for (size_t slot = 0; slot < slots; slot += 2) {
    table[2 * slot] = slot * inverse % slots + 1;
    table[2 * slot + 1] = slot * slot;
  }
  measure();
  uint64_t digest = 0;
  for (int i = 0; i < 50000 * g_times; ++i) {
    const uint64_t wanted = random_number() % slots;
    for (size_t slot = wanted * spread % slots;; slot = (slot + 1) % slots) {
      hl_read(&table[2 * slot]);
      if (table[2 * slot] == 0) break;
      digest = digest * 31 + table[2 * slot + 1];
      if (table[2 * slot] == wanted + 1) break;
    }
  }
  return report(digest);
}

// --- chains
struct link {
  struct link* next;
  uint64_t key, value[4];
};

static int chains(size_t bytes) {
  const size_t count = bytes / 64, buckets = count / 2;
  struct link** heads = taken(buckets, sizeof *heads);
  for (size_t i = 0; i < count; ++i) {
    struct link* made = taken(1, sizeof *made);
    made->key = i;
    made->value[0] = i * 7;
    struct link** head = &heads[(i * 0x9E3779B97F4A7C15u >> 9) % buckets];
    made->next = *head;
    *head = made;
  }
  measure();
  uint64_t digest = 0;
  for (int i = 0; i < 30000 * g_times; ++i) {
    const uint64_t wanted = random_number() % count;
    hl_read(&heads[(wanted * 0x9E3779B97F4A7C15u >> 9) % buckets]);
    struct link* at = heads[(wanted * 0x9E3779B97F4A7C15u >> 9) % buckets];
    for (;; at = at->next) {
      hl_write(at);
      if (at->key == wanted) break;
    }
    digest = digest * 31 + at->value[0]++;
  }
  return report(digest);
}

// --- breadth first through a random graph
static int bfs(size_t bytes) {
  const uint32_t degree = 8, nodes = (uint32_t)(bytes / (4 * (degree + 2)));
  uint32_t* edges = taken((size_t)nodes * degree, sizeof *edges);
  uint32_t *distance = taken(nodes, sizeof *distance), *queue = taken(nodes, sizeof *queue);
  for (size_t i = 0; i < (size_t)nodes * degree; ++i) edges[i] = (uint32_t)(random_number() % nodes);
  measure();
  uint32_t begin = 0, end = 1, seen = 1;
  distance[0] = 1;
  const uint32_t wanted = 200000 * (uint32_t)g_times, most = nodes / 4 < wanted ? nodes / 4 : wanted;
  while (begin != end && seen < most) {
    const uint32_t node = queue[begin++];
    hl_read(&edges[(size_t)node * degree]);
    for (uint32_t i = 0; i < degree; ++i) {
      const uint32_t to = edges[(size_t)node * degree + i];
      hl_write(&distance[to]);
      if (distance[to] != 0) continue;
      distance[to] = distance[node] + 1;
      queue[end++] = to;
      ++seen;
    }
  }
  uint64_t digest = seen;
  for (uint32_t i = 0; i < nodes; ++i) digest = digest * 31 + distance[i];
  return report(digest);
}

// --- a sparse matrix times a vector that is far as well
static int matrix(size_t bytes) {
  const size_t rows = bytes / 4 / 8, each = 2;  // a quarter of the bytes is the vector's
  uint32_t* columns = taken(rows * each, sizeof *columns);
  double *values = taken(rows * each, sizeof *values), *x = taken(rows, sizeof *x), *y = taken(rows, sizeof *y);
  for (size_t i = 0; i < rows * each; ++i)
    columns[i] = (uint32_t)(random_number() % rows), values[i] = 1.0 / (1 + i % 7);
  for (size_t i = 0; i < rows; ++i) x[i] = (double)(i % 1000);
  measure();
  const size_t wanted = (size_t)50000 * (size_t)g_times, some = rows < wanted ? rows : wanted;
  for (size_t row = 0; row < some; ++row) {
    double sum = 0;
    for (size_t i = row * each; i < (row + 1) * each; ++i) {
      hl_read(&x[columns[i]]);
      sum += values[i] * x[columns[i]];
    }
    y[row] = sum;
  }
  uint64_t digest = 0;
  for (size_t row = 0; row < some; ++row) digest = digest * 31 + (uint64_t)(y[row] * 1024);
  return report(digest);
}

// --- in order: what hints should not slow down
static int sums(size_t bytes) {
  const size_t count = bytes / 8;
  uint64_t* numbers = taken(count, sizeof *numbers);
  for (size_t i = 0; i < count; ++i) numbers[i] = i ^ 0x5555;
  measure();
  uint64_t digest = 0;
  for (int round = 0; round < 4 * g_times; ++round)
    for (size_t i = 0; i < count; ++i) digest += numbers[i] >> round % 8;
  return report(digest);
}

// --- k-means: points of many dimensions, or few, each a block of its own
enum { kCentres = 8 };
struct points {
  size_t count;
  int dimensions;  // which no compiler knows
  float** point;
  float* centre[kCentres];
  float* sum[kCentres];
};

static int nearest(const float* restrict point, float* const* centre, int dimensions) {
  int best = 0;
  float least = 1e30f;
  for (int k = 0; k < kCentres; ++k) {
    float apart = 0;
    for (int i = 0; i < dimensions; ++i) {
      const float difference = point[i] - centre[k][i];
      apart += difference * difference;
    }
    if (apart < least) least = apart, best = k;
  }
  return best;
}

static void add(float* restrict sum, const float* restrict point, int dimensions) {
  for (int i = 0; i < dimensions; ++i) sum[i] += point[i];
}

static struct points made_points(size_t bytes, int dimensions) {
  const size_t each = (size_t)dimensions * sizeof(float);
  struct points made = {bytes / each, dimensions, NULL, {NULL}, {NULL}};
  made.point = taken(made.count, sizeof *made.point);
  for (size_t i = 0; i < made.count; ++i) {
    made.point[i] = taken(1, each);
    for (int d = 0; d < dimensions; ++d) made.point[i][d] = (float)(random_number() % 1000);
  }
  for (int k = 0; k < kCentres; ++k) {
    made.centre[k] = taken(1, each);
    made.sum[k] = taken(1, each);
    for (int d = 0; d < dimensions; ++d) made.centre[k][d] = (float)(random_number() % 1000);
  }
  return made;
}

// Of each point the nearest centre, and the sums of which the next centres are made.
static uint64_t round_of_means(struct points* of, size_t begin, size_t end) {
  uint64_t digest = 0;
  for (size_t i = begin; i < end; ++i) {
    const int best = nearest(of->point[i], of->centre, of->dimensions);
    add(of->sum[best], of->point[i], of->dimensions);
    digest = digest * 31 + (uint64_t)best;
  }
  return digest;
}

static int means_of(size_t bytes, int dimensions) {
  struct points all = made_points(bytes, dimensions);
  const size_t wanted = (size_t)1000000 * (size_t)g_times / (size_t)dimensions;
  const size_t some = all.count < wanted ? all.count : wanted;
  measure();
  uint64_t digest = 0;
  for (size_t round = 0; round < 8; ++round) {
    const size_t begin = round * some % (all.count - some + 1);
    digest = digest * 7 + round_of_means(&all, begin, begin + some);
  }
  for (int k = 0; k < kCentres; ++k) digest = digest * 31 + (uint64_t)all.sum[k][0];
  return report(digest);
}
static volatile int g_many = 256, g_few = 3;
static int means(size_t bytes) { return means_of(bytes, g_many); }
static int means_few(size_t bytes) { return means_of(bytes, g_few); }

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    int (*run)(size_t);
  } kernels[] = {{"tree", tree},     {"hash", hash}, {"chains", chains}, {"bfs", bfs},
                 {"matrix", matrix}, {"sums", sums}, {"means", means},   {"means-few", means_few}};
  if (count == 4) g_times = atoi(arguments[3]);
  if (count == 3 || count == 4)
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
      if (strcmp(arguments[1], kernels[i].name) == 0) return kernels[i].run((size_t)atoi(arguments[2]) << 20);
  fprintf(stderr, "usage: kernels tree|hash|chains|bfs|matrix|sums|means|means-few MIB [TIMES]\n");
  return 2;
}
