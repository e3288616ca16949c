// Another process reads and writes this one's far memory: process_vm_readv and process_vm_writev.
#include "common.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

static size_t g_bytes;

static char ask(int from, int to, char command) {
  char answer = 0;
  CHECK(write(to, &command, 1) == 1 && read(from, &answer, 1) == 1);
  return answer;
}

// The process that is looked at: does what it is told to its own memory.
static void serve(char* memory, int from, int to) {
  char command;
  while (read(from, &command, 1) == 1) {
    if (command == 'f') fill(memory, g_bytes, 1);
    if (command == 'p') push_out();
    char answer = command == 'c' ? (char)('0' + (wrong_words(memory, g_bytes, 2) != 0)) : 'y';
    CHECK(write(to, &answer, 1) == 1);
  }
  _exit(0);
}

int main(void) {
  check_preloaded();
  g_bytes = big_bytes();
  char* memory = big_mmap(g_bytes);
  char* mine = big_malloc(g_bytes);
  int down[2], up[2];
  CHECK(pipe(down) == 0 && pipe(up) == 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(down[1]);
    close(up[0]);
    serve(memory, down[0], up[1]);
  }
  close(down[0]);
  close(up[1]);
  ask(up[0], down[1], 'f');
  ask(up[0], down[1], 'p');
  struct iovec here = {mine, g_bytes}, there = {memory, g_bytes};
  printf("process_vm_readv %zd\n", process_vm_readv(child, &here, 1, &there, 1, 0));
  printf("wrong words %zu\n", wrong_words(mine, g_bytes, 1));
  fill(mine, g_bytes, 2);
  ask(up[0], down[1], 'p');
  printf("process_vm_writev %zd\n", process_vm_writev(child, &here, 1, &there, 1, 0));
  ask(up[0], down[1], 'p');
  printf("wrong there %c\n", ask(up[0], down[1], 'c'));
  // Across the end of the mapping: the part that is there.
  there = (struct iovec){memory + g_bytes - 100, 100};
  here.iov_len = 100;
  printf("the last bytes %zd\n", process_vm_readv(child, &here, 1, &there, 1, 0));
  close(down[1]);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("ended with %d\n", status);
  return 0;
}
