// fork without exec, several generations: parent and child keep their own data, allocation and stdio work on both
// sides.
#include "report.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { kBytes = 8 << 20 };

static void fill(unsigned char* memory, unsigned seed) {
  for (size_t i = 0; i < kBytes; i += 64) memory[i] = (unsigned char)(seed + i / 64 * 7);
}
static void expect(const unsigned char* memory, unsigned seed) {
  for (size_t i = 0; i < kBytes; i += 64) CHECK(memory[i] == (unsigned char)(seed + i / 64 * 7));
}

static int generation(int depth, unsigned char* heap, unsigned char* mapped, unsigned seed) {
  if (depth == 0) return 0;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    expect(heap, seed);
    expect(mapped, seed + 1);
    fill(heap, seed + 10);
    fill(mapped, seed + 11);
    unsigned char* more = malloc(kBytes);
    fill(more, 99);
    int result = generation(depth - 1, heap, mapped, seed + 10);
    expect(more, 99);
    expect(heap, depth > 1 ? seed + 30 : seed + 10);  // a parent has filled it since
    printf("generation %d done, %d\n", depth, result);
    fflush(stdout);
    _exit(depth + result);
  }
  fill(heap, seed + 20);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  expect(heap, seed + 20);
  expect(mapped, seed + 1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void many_children(unsigned char* heap) {
  pid_t children[10];
  fill(heap, 5);
  for (int i = 0; i < 10; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      expect(heap, 5);
      void* block = calloc(1000, 1000);
      CHECK(block != NULL && ((char*)block)[999999] == 0);
      heap[i] = 1;
      exit(i);
    }
  }
  for (int i = 0; i < 10; ++i) {
    int status;
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    printf("child %d: %d\n", i, WEXITSTATUS(status));
  }
  expect(heap, 5);
}

int main(void) {
  check_preloaded();
  setvbuf(stdout, NULL, _IOLBF, 0);
  unsigned char* heap = malloc(kBytes);
  unsigned char* mapped = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(heap != NULL && mapped != MAP_FAILED);
  fill(heap, 1);
  fill(mapped, 2);
  printf("result %d\n", generation(4, heap, mapped, 1));
  many_children(heap);
  pid_t child = vfork();
  if (child == 0) _exit(9);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("vfork %d\n", WEXITSTATUS(status));
  printf("system %d\n", system("exit 4"));
  char line[64] = "";
  FILE* pipe = popen("echo from a shell", "r");
  CHECK(fgets(line, sizeof line, pipe) != NULL);
  printf("popen %s", line);
  printf("pclose %d\n", pclose(pipe));
  return 0;
}
