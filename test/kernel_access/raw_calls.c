// Calls by syscall(2) whose arguments lead further than a page, and the functions of libc that few programs call:
// what they point at is far, and what that points at, too. Wrong pointers are errors, as natively.
#include "common.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { kPage = 4096, kPlace = 256 << 10, kPlaces = 8, kWrong = 8, kFutexRequeue = 456 };

static char* g_places;  // each begins with a page of its own

static char* place(int number) { return g_places + (size_t)number * kPlace; }
// So that it reaches over pages' ends.
static char* uneven(int number) { return place(number) + kPage - 24; }

static void say(const char* what, long result) {
  printf("%-20s %ld%s\n", what, result, result == -1 ? strerror(errno) : "");
}

static void clear(void) { memset(g_places, 0, (size_t)kPlaces * kPlace); }

static void vectors(void) {
  enum { kParts = 300, kBytes = 600 };
  int ends[2];
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
  clear();
  struct iovec* from = (struct iovec*)uneven(0);
  struct iovec* to = (struct iovec*)uneven(2);
  fill(place(1), kParts * kBytes, 1);
  for (int i = 0; i < kParts; ++i) {
    from[i] = (struct iovec){place(1) + i * kBytes, kBytes};
    to[i] = (struct iovec){place(3) + i * kBytes, kBytes};
  }
  push_out();
  say("writev", syscall(SYS_writev, ends[1], from, kParts));
  push_out();
  say("readv", syscall(SYS_readv, ends[0], to, kParts));
  say("wrong words", (long)wrong_words(place(3), kParts * kBytes, 1));
  memset(place(3), 0, kParts * kBytes);
  push_out();
  say("process_vm_readv", syscall(SYS_process_vm_readv, getpid(), to, kParts, from, kParts, 0));
  say("wrong words", (long)wrong_words(place(3), kParts * kBytes, 1));
  fill(place(1), kParts * kBytes, 2);
  push_out();
  say("process_vm_writev", process_vm_writev(getpid(), from, kParts, to, kParts, 0));
  say("wrong words", (long)wrong_words(place(3), kParts * kBytes, 2));
  say("wrong vector", syscall(SYS_readv, ends[0], (void*)kWrong, 2));
  from[0].iov_base = (void*)kWrong;
  say("wrong part", syscall(SYS_writev, ends[1], from, 1));
  close(ends[0]);
  close(ends[1]);
}

static void messages(void) {
  enum { kMessages = 100 };
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  clear();
  struct mmsghdr *from = (struct mmsghdr*)uneven(0), *to = (struct mmsghdr*)uneven(2);
  struct iovec* parts = (struct iovec*)uneven(4);
  for (int i = 0; i < kMessages; ++i) {
    parts[2 * i] = (struct iovec){place(1) + i * 1000, 1000};
    parts[2 * i + 1] = (struct iovec){place(3) + i * 1000, 1000};
    from[i].msg_hdr = (struct msghdr){.msg_iov = &parts[2 * i], .msg_iovlen = 1};
    to[i].msg_hdr = (struct msghdr){.msg_iov = &parts[2 * i + 1], .msg_iovlen = 1};
  }
  fill(place(1), kMessages * 1000, 3);
  long sent = 0, got = 0;
  while (got < kMessages) {
    push_out();
    if (sent < kMessages) sent += syscall(SYS_sendmmsg, ends[1], from + sent, 8, MSG_DONTWAIT);
    push_out();
    long now = syscall(SYS_recvmmsg, ends[0], to + got, kMessages - got, MSG_DONTWAIT, NULL);
    CHECK(now > 0);
    got += now;
  }
  say("recvmmsg", got);
  say("wrong words", (long)wrong_words(place(3), kMessages * 1000, 3));
  say("wrong message", syscall(SYS_sendmsg, ends[1], (void*)kWrong, 0));
  close(ends[0]);
  close(ends[1]);
}

static void waiting(void) {
  enum { kEvents = 600 };
  clear();
  int set = epoll_create1(0), events[kEvents];
  for (int i = 0; i < kEvents; ++i) {
    events[i] = eventfd(1, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};
    CHECK(events[i] >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, events[i], &event) == 0);
  }
  push_out();
  say("epoll_wait", syscall(SYS_epoll_wait, set, uneven(0), kEvents, 1000));
  struct pollfd {
    int file;
    short asked, found;
  }* waits = (struct pollfd*)uneven(1);
  for (int i = 0; i < kEvents; ++i) waits[i] = (struct pollfd){events[i], 1, 0};
  push_out();
  say("poll", syscall(SYS_poll, waits, kEvents, 1000));
  struct {
    void* bits;
    size_t bytes;
  } mask = {uneven(2) + 8192, 8}, *far_mask = memcpy(uneven(2), &mask, sizeof mask);
  fd_set* reads = (fd_set*)uneven(3);
  FD_SET(events[0], reads);
  push_out();
  say("pselect6", syscall(SYS_pselect6, events[0] + 1, reads, NULL, NULL, NULL, far_mask));
  unsigned* word = (unsigned*)place(4);
  *word = 5;
  struct futex_waitv* waiters = (struct futex_waitv*)uneven(5);
  for (int i = 0; i < 100; ++i)
    waiters[i] = (struct futex_waitv){.val = i == 99 ? 6 : 5, .uaddr = (uintptr_t)word, .flags = FUTEX_32};
  push_out();
  say("futex_waitv", syscall(SYS_futex_waitv, waiters, 100, 0, NULL, 0));
  struct futex_waitv* pair = (struct futex_waitv*)uneven(6);
  pair[0] = (struct futex_waitv){.val = 5, .uaddr = (uintptr_t)word, .flags = FUTEX_32};
  pair[1] = (struct futex_waitv){.uaddr = (uintptr_t)place(7), .flags = FUTEX_32};
  push_out();
  say("futex_requeue", syscall(kFutexRequeue, pair, 0, 1, 1));  // before Linux 6.7: ENOSYS
  for (int i = 0; i < kEvents; ++i) close(events[i]);
  close(set);
}

static void queues_and_semaphores(void) {
  enum { kSemaphores = 3000, kBytes = 8000 };
  clear();
  int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, kSemaphores, 0600);
  CHECK(queue >= 0 && set >= 0);
  fill(uneven(0), kBytes, 4);
  *(long*)uneven(0) = 7;
  push_out();
  say("msgsnd", syscall(SYS_msgsnd, queue, uneven(0), kBytes - 8, 0));
  push_out();
  say("msgrcv", syscall(SYS_msgrcv, queue, uneven(1), kBytes - 8, 0, 0));
  say("equal", memcmp(uneven(0), uneven(1), kBytes) == 0);
  unsigned short* values = (unsigned short*)uneven(2);
  for (int i = 0; i < kSemaphores; ++i) values[i] = (unsigned short)(i * 7 % 1000);
  push_out();
  say("semctl SETALL", semctl(set, 0, SETALL, values));
  memset(values, 0, kSemaphores * sizeof *values);
  push_out();
  say("semctl GETALL", semctl(set, 0, GETALL, values));
  size_t wrong = 0;
  for (int i = 0; i < kSemaphores; ++i) wrong += values[i] != i * 7 % 1000;
  say("wrong values", (long)wrong);
  push_out();
  say("semctl IPC_STAT", semctl(set, 0, IPC_STAT, uneven(3)));
  say("semaphores", (long)((struct semid_ds*)uneven(3))->sem_nsems);
  CHECK(semctl(set, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
}

static void bytes_by_number(void) {
  clear();
  fill(place(0), kPlace, 5);
  int file = memfd_create("bytes", 0);
  push_out();
  say("pwrite64", syscall(SYS_pwrite64, file, place(0), kPlace, 100));
  push_out();
  say("pread64", syscall(SYS_pread64, file, place(1), kPlace, 100));
  say("wrong words", (long)wrong_words(place(1), kPlace, 5));
  push_out();
  say("getrandom", syscall(SYS_getrandom, place(2), kPlace, 0));
  say("wrong pointer", syscall(SYS_pread64, file, (void*)kWrong, 100, 0));
  say("no events", syscall(SYS_epoll_wait, 0, place(0), -1, 0) == -1);
  close(file);
}

static void words_of_a_program(void) {
  enum { kWords = 700 };
  clear();
  char** words = (char**)uneven(0);
  strcpy(place(1), "/bin/sh");
  words[0] = place(1);
  strcpy(uneven(2), "-c");
  words[1] = uneven(2);
  strcpy(uneven(3), "echo $# words; exit 9");
  words[2] = uneven(3);
  for (int i = 3; i < kWords; ++i) words[i] = strcpy(place(4) + i * 256, "word");
  fflush(stdout);
  push_out();
  pid_t child = vfork();
  if (child == 0) {
    syscall(SYS_execve, place(1), words, place(7));
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  say("execve", WEXITSTATUS(status));
}

int main(void) {
  check_preloaded();
  setvbuf(stdout, NULL, _IOLBF, 0);
  g_places = big_mmap((size_t)kPlaces * kPlace);
  vectors();
  messages();
  waiting();
  queues_and_semaphores();
  bytes_by_number();
  words_of_a_program();
  return 0;
}
