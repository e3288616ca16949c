// A program that has become another user when its memory nears the budget, and may start no thread any more, or is
// not even let into its own /proc/self: paging cannot begin, and the program goes on without, its memory unharmed,
// and so do its children. no_more_threads [undumpable]
#include "report.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { kPage = 4096, kUser = 65534, kPieces = 100, kPieceBytes = 1 << 20 };

static unsigned char* g_pieces[kPieces];

static void fill(int piece) {
  g_pieces[piece] = mmap(NULL, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g_pieces[piece] != MAP_FAILED);
  for (int at = 0; at < kPieceBytes; at += kPage) g_pieces[piece][at] = (unsigned char)(piece + at / kPage);
}

static int right(void) {
  for (int piece = 0; piece < kPieces; ++piece)
    for (int at = 0; at < kPieceBytes; at += kPage)
      if (g_pieces[piece][at] != (unsigned char)(piece + at / kPage) || g_pieces[piece][at + 1] != 0) return 0;
  return 1;
}

int main(int count, char** arguments) {
  (void)arguments;
  check_preloaded();
  if (geteuid() != 0) {
    fprintf(stderr, "needs root, to become a user with limits\n");
    return 77;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct rlimit none = {0, 4096};  // of which a user without privileges may raise it again
  CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
  CHECK(setgid(kUser) == 0 && setuid(kUser) == 0);
  CHECK(prctl(PR_SET_DUMPABLE, count < 2) == 0);
  for (int piece = 0; piece < kPieces; ++piece) {
    fill(piece);
    nanosleep(&(struct timespec){0, 5000000}, NULL);  // the runtime looks now and then
  }
  printf("right %d\n", right());
  none.rlim_cur = none.rlim_max;
  CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(right() ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  printf("child %x, right %d\n", (unsigned)status, right());
  return 0;
}
