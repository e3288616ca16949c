// A program that does something to every descriptor that there could be, by each function that could do harm there,
// and by number: none is open beyond its own, as natively, and no byte of far memory is lost by it.
#include "far_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { kFirst = 30, kEnd = 1200 };

static char* far;  // what is taken off its userfaultfd, if a call can
static char junk[65536];
static int set, pair[2], filled[2], zeros;

static struct iovec part = {junk, sizeof junk};
static uint64_t range[4];
static struct linger at_once = {1, 0};
static struct timeval soon = {0, 1};
static struct itimerspec never = {{0, 0}, {0, 0}};
static struct epoll_event event;
static struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
static const int one = 1, none = 0;

static const unsigned long kUnregister = _IOR(
    0xAA, 0x01, struct {
      uint64_t first;
      uint64_t bytes;
    });

static struct msghdr with(int descriptor, char* control, size_t bytes) {
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = bytes};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  *head = (struct cmsghdr){CMSG_LEN(sizeof descriptor), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return message;
}

// What a receiver could do with it.
static void spoil(int descriptor) {
  if (ftruncate(descriptor, 0) == 0) puts("what was handed on is cut");
  shutdown(descriptor, SHUT_RDWR);
  close(descriptor);
}

static long hand_on(int descriptor, int by_number, int several) {
  char control[CMSG_SPACE(sizeof descriptor)] = {0};
  part.iov_len = 1;
  struct mmsghdr message = {.msg_hdr = with(descriptor, control, sizeof control)};
  long sent = several     ? by_number ? syscall(SYS_sendmmsg, pair[0], &message, 1, MSG_DONTWAIT)
                                      : sendmmsg(pair[0], &message, 1, MSG_DONTWAIT)
                  : by_number ? syscall(SYS_sendmsg, pair[0], &message.msg_hdr, MSG_DONTWAIT)
                          : sendmsg(pair[0], &message.msg_hdr, MSG_DONTWAIT);
  if (sent > 0 && recvmsg(pair[1], &message.msg_hdr, MSG_DONTWAIT) > 0 && message.msg_hdr.msg_controllen != 0) {
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message.msg_hdr)), sizeof received);
    spoil(received);
  }
  part.iov_len = sizeof junk;
  return sent;
}

static long formatted(int descriptor, const char* format, ...) {
  va_list list;
  va_start(list, format);
  long result = vdprintf(descriptor, format, list);
  va_end(list);
  return result;
}

static long map(int descriptor, int by_number) {
  void* at = by_number ? (void*)syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                       : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return at == MAP_FAILED ? -1 : 0;
}

// A set of the runtime's must not lose what it waits for.
static long forget(int descriptor, int by_number) {
  long done = -1;
  for (int other = 900; other < kEnd; ++other)
    if ((by_number ? syscall(SYS_epoll_ctl, descriptor, EPOLL_CTL_DEL, other, &event)
                   : epoll_ctl(descriptor, EPOLL_CTL_DEL, other, &event)) == 0)
      done = 0;
  return done;
}

static long failed_is_number(int error) { return error == 0 ? 0 : (errno = error, -1); }

// Each by the function and by number. X(what it is called, the function, the call)
#define CALLS(X)                                                                                                \
  X("write", write(fd, junk, sizeof junk), syscall(SYS_write, fd, junk, sizeof junk))                           \
  X("pwrite", pwrite(fd, junk, sizeof junk, 0), syscall(SYS_pwrite64, fd, junk, sizeof junk, 0))                \
  X("writev", writev(fd, &part, 1), syscall(SYS_writev, fd, &part, 1))                                          \
  X("pwritev", pwritev(fd, &part, 1, 0), syscall(SYS_pwritev, fd, &part, 1, 0, 0))                              \
  X("pwritev2", pwritev2(fd, &part, 1, 0, 0), syscall(SYS_pwritev2, fd, &part, 1, 0, 0, 0))                     \
  X("send", send(fd, junk, 9, MSG_DONTWAIT), syscall(SYS_sendto, fd, junk, 9, MSG_DONTWAIT, NULL, 0))           \
  X("recv", recv(fd, junk, 9, MSG_DONTWAIT), syscall(SYS_recvfrom, fd, junk, 9, MSG_DONTWAIT, NULL, NULL))      \
  X("sendmsg", hand_on(fd, 0, 0), hand_on(fd, 1, 0))                                                            \
  X("sendmmsg", hand_on(fd, 0, 1), hand_on(fd, 1, 1))                                                           \
  X("ftruncate", ftruncate(fd, 0), syscall(SYS_ftruncate, fd, 0))                                               \
  X("fallocate", fallocate(fd, 3, 0, 1l << 30), syscall(SYS_fallocate, fd, 3, 0, 1l << 30))                     \
  X("posix_fallocate", failed_is_number(posix_fallocate(fd, 0, 9)), syscall(SYS_fallocate, fd, 0, 0, 9))        \
  X("posix_fadvise", failed_is_number(posix_fadvise(fd, 0, 9, 4)), syscall(SYS_fadvise64, fd, 0, 9, 4))         \
  X("shutdown", shutdown(fd, SHUT_RDWR), syscall(SYS_shutdown, fd, SHUT_RDWR))                                  \
  X("fcntl", fcntl(fd, F_SETFL, 0), syscall(SYS_fcntl, fd, F_SETFL, 0))                                         \
  X("fcntl of a copy", fcntl(fd, F_DUPFD, kEnd), syscall(SYS_fcntl, fd, F_DUPFD, kEnd))                         \
  X("ioctl FIONBIO", ioctl(fd, FIONBIO, &one), syscall(SYS_ioctl, fd, FIONBIO, &none))                          \
  X("ioctl UFFDIO_UNREGISTER", ioctl(fd, kUnregister, range), syscall(SYS_ioctl, fd, kUnregister, range))       \
  X("epoll_ctl", forget(fd, 0), forget(fd, 1))                                                                  \
  X("timerfd_settime", timerfd_settime(fd, 0, &never, NULL), syscall(SYS_timerfd_settime, fd, 0, &never, NULL)) \
  X("setsockopt", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon),                                  \
    syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once))                               \
  X("connect", connect(fd, &nowhere, sizeof nowhere), syscall(SYS_connect, fd, &nowhere, sizeof nowhere))       \
  X("mmap", map(fd, 0), map(fd, 1))                                                                             \
  X("sendfile", sendfile(fd, zeros, NULL, PAGE), syscall(SYS_sendfile, fd, zeros, NULL, PAGE))                  \
  X("sendfile from it", sendfile(pair[0], fd, NULL, PAGE), syscall(SYS_sendfile, pair[0], fd, NULL, PAGE))      \
  X("splice", splice(filled[0], NULL, fd, NULL, 9, SPLICE_F_NONBLOCK),                                          \
    syscall(SYS_splice, filled[0], NULL, fd, NULL, 9, SPLICE_F_NONBLOCK))                                       \
  X("copy_file_range", copy_file_range(zeros, NULL, fd, NULL, 9, 0),                                            \
    syscall(SYS_copy_file_range, zeros, NULL, fd, NULL, 9, 0))                                                  \
  X("fchmod", fchmod(fd, 0), syscall(SYS_fchmod, fd, 0))                                                        \
  X("flock", flock(fd, LOCK_EX | LOCK_NB), syscall(SYS_flock, fd, LOCK_SH | LOCK_NB))                           \
  X("lockf", lockf(fd, F_TLOCK, 0), -1)                                                                         \
  X("lseek", lseek(fd, 9, SEEK_SET), syscall(SYS_lseek, fd, 9, SEEK_SET))                                       \
  X("dprintf", dprintf(fd, "%d bytes", 9), -1)                                                                  \
  X("vdprintf", formatted(fd, "%g bytes", 9.0), -1)                                                             \
  X("dup", dup(fd), syscall(SYS_dup, fd))                                                                       \
  X("fdopendir", fdopendir(fd) != NULL ? 0 : -1, -1)

static long call(int which, int fd) {
  switch (which) {
#define X(name, function, number) \
  case __COUNTER__:               \
    return function;              \
  case __COUNTER__:               \
    return number;
    CALLS(X)
#undef X
    default:
      return -2;
  }
}
static const char* const names[] = {
#define X(name, function, number) name, name " by number",
    CALLS(X)
#undef X
};

// The program's own descriptors may have the same numbers: there each call does what it does.
static void of_its_own(void) {
  int high = fcntl(filled[1], F_DUPFD, 950), other = fcntl(zeros, F_DUPFD, 950);
  CHECK(high >= 950 && other >= 950);
  printf("write %ld, by number %ld\n", (long)write(high, "nine byte", 9), syscall(SYS_write, high, "nine byte", 9));
  printf("dprintf %d\n", dprintf(high, "%d and %g and %s\n", 1, 0.5, "x"));
  char text[64] = "";
  printf("read %ld\n", (long)read(filled[0], text, sizeof text - 1));
  puts(text);
  show("tee of one that is no pipe", tee(other, high, 9, 0));
  show("sendmsg of a wrong pointer", sendmsg(pair[0], (struct msghdr*)8, 0));
  char control[CMSG_SPACE(sizeof other)] = {0};
  part.iov_len = 1;
  struct msghdr message = with(other, control, sizeof control);
  printf("handed on %ld\n", (long)sendmsg(pair[0], &message, 0));
  message.msg_control = (char*)16;
  show("sendmsg of a wrong pointer within", sendmsg(pair[0], &message, 0));
  message = with(other, control, sizeof control);
  printf("received %ld\n", (long)recvmsg(pair[1], &message, 0));
  close(high), close(other);
}

int main(void) {
  check_preloaded();
  far = new_bytes();
  range[0] = (uint64_t)far, range[1] = PAGES * PAGE;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(filled) == 0);
  set = epoll_create1(0);
  zeros = open("/dev/zero", O_RDWR);
  CHECK(zeros >= 0 && set >= 0);
  of_its_own();
  CHECK(write(filled[1], "what is spliced", 15) == 15);
  for (int which = 0; which < (int)(sizeof names / sizeof *names); ++which)
    for (int fd = kFirst; fd < kEnd; ++fd)
      if (call(which, fd) >= 0) printf("%s was done to %d\n", names[which], fd);
  count_right("after calls on all numbers", far);
  show_that_paging_goes_on(far);
  return 0;
}
