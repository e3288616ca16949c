// What debuggers look at: values in far memory that tell each position apart, frames with names, threads; and ways to
// die. Commands come on standard input, one letter each.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPages = 8192, kSecretPages = 1600, kPageBytes = 4096 };

struct Node {
  struct Node* next;
  long value;
  char apart[kPageBytes - 16];
};

struct Node* g_nodes;  // one a page, in far memory
uint64_t* g_secret;    // excluded from core files by the program
volatile char* g_nowhere;
static pthread_barrier_t g_ready;

static void write_nodes(void) {
  for (long i = 0; i < kPages; ++i) {
    g_nodes[i].value = i * 3 + 1;
    g_nodes[i].next = i + 1 < kPages ? &g_nodes[i + 1] : NULL;
  }
}

static void fill(void) {
  g_nodes = mmap(NULL, sizeof(struct Node) * kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  write_nodes();
  g_secret = mmap(NULL, kSecretPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(g_secret, 0x5e, kSecretPages * kPageBytes);
  madvise(g_secret, kSecretPages * kPageBytes, MADV_DONTDUMP);
}

static long wrong_nodes(void) {
  long wrong = 0;
  for (long i = 0; i < kPages; ++i) wrong += g_nodes[i].value != i * 3 + 1;
  return wrong;
}

__attribute__((noinline)) static void dies_here(struct Node* node, char how) {
  volatile long depth = node->value;
  if (how == 's') *g_nowhere = 1;
  if (how == 'a') abort();
  if (how == 'q') kill(getpid(), SIGQUIT);
  if (how == 'f') {
    volatile int zero = 0;
    depth = depth / zero;
  }
  printf("survived %ld\n", depth);
}

static void* wait_in_thread(void* argument) {
  struct Node* mine = argument;
  pthread_barrier_wait(&g_ready);
  while (mine->value != -1) usleep(1000);
  return NULL;
}

// Busy in far memory all the time.
static volatile int g_stir;
static void* stir(void* argument) {
  (void)argument;
  pthread_barrier_wait(&g_ready);
  unsigned char* memory = malloc(16 << 20);
  for (unsigned long i = 0; g_stir; ++i) {
    for (size_t at = 0; at < 16 << 20; at += kPageBytes) memory[at] = (unsigned char)i;
    void* block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    free(block);
  }
  free(memory);
  return NULL;
}

int main(int count, char** arguments) {
  g_stir = count > 1 && strcmp(arguments[1], "stir") == 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  fill();
  pthread_t waiting, stirring;
  pthread_barrier_init(&g_ready, NULL, 3);
  pthread_create(&waiting, NULL, wait_in_thread, &g_nodes[77]);
  pthread_create(&stirring, NULL, stir, NULL);
  pthread_barrier_wait(&g_ready);
  printf("ready %d %lx %lx\n", getpid(), (unsigned long)g_nodes, (unsigned long)g_secret);
  char command;
  while (read(0, &command, 1) == 1) {
    if (command == '\n') continue;
    if (command == 'c') {
      printf("wrong %ld\n", wrong_nodes());
    } else if (command == 'w') {
      write_nodes();
      puts("written");
    } else {
      dies_here(&g_nodes[4321], command);
    }
  }
  g_stir = 0;
  pthread_join(stirring, NULL);
  return 0;
}
