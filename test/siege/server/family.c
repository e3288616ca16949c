// family CHILDREN MIB: a parent with memory that must be right in CHILDREN children which all live at the same time,
// each of which reads and writes. Prints "right CHILDREN" and nothing else, whatever else goes on at the server.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kLooked = 64 };

static unsigned char content(size_t page, size_t writer) { return (unsigned char)(page * 7 + writer * 13 + 1); }

// Whether `kLooked` pages, spread over all, have what the parent wrote, and what is written stays.
static int look(unsigned char* memory, size_t pages, size_t writer) {
  for (size_t i = 0; i < kLooked; ++i) {
    size_t page = (i * 7919 + writer * 31) % pages;
    if (memory[page * kPage + 5] != content(page, 0)) return 0;
    memory[page * kPage + 6] = content(page, writer);
    if (memory[page * kPage + 6] != content(page, writer)) return 0;
  }
  return 1;
}

static void child(unsigned char* memory, size_t pages, size_t writer, int ready, int go) {
  char byte = (char)look(memory, pages, writer);
  if (write(ready, &byte, 1) != 1) _exit(2);
  // All others live by now.
  if (read(go, &byte, 1) != 0) _exit(3);
  _exit(look(memory, pages, writer + 1) ? 0 : 4);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  size_t children = (size_t)atol(words[1]), pages = (size_t)atol(words[2]) * 256;
  unsigned char* memory = mmap(NULL, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  for (size_t page = 0; page < pages; ++page) memory[page * kPage + 5] = content(page, 0);
  int ready[2], go[2];
  if (pipe(ready) != 0 || pipe(go) != 0) return 2;
  for (size_t i = 0; i < children; ++i) {
    pid_t pid = fork();
    if (pid < 0) return 2;
    if (pid == 0) {
      close(go[1]);
      child(memory, pages, i + 1, ready[1], go[0]);
    }
  }
  close(ready[1]);
  size_t right = 0;
  char byte;
  for (size_t i = 0; i < children && read(ready[0], &byte, 1) == 1; ++i) right += (size_t)(byte == 1);
  close(go[1]);
  size_t ended = 0;
  for (int status; wait(&status) > 0;) ended += (size_t)(status == 0);
  printf("right %zu\n", ended < right ? ended : right);
  return look(memory, pages, 0) ? 0 : 1;
}
