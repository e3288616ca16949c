// Calls on descriptors that name no memory: on the program's own as natively, and whatever numbers a program tries,
// far memory stays what it is.
#include "far_bytes.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { kFirstOfTheRuntime = 900, kEnd = 1200 };

static void of_a_file(void) {
  char name[] = "./files-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  show("ftruncate", syscall(SYS_ftruncate, file, 100000));
  show("fallocate", syscall(SYS_fallocate, file, 0, 0, 200000));
  show("fadvise64", syscall(SYS_fadvise64, file, 0, 1000, POSIX_FADV_WILLNEED));
  show("readahead", syscall(SYS_readahead, file, 0, 100000));
  show("lseek", syscall(SYS_lseek, file, -10L, SEEK_END));
  show("fchmod", syscall(SYS_fchmod, file, 0640));
  show("fchown", syscall(SYS_fchown, file, getuid(), getgid()));
  show("flock", syscall(SYS_flock, file, LOCK_EX | LOCK_NB));
  show("sync_file_range", syscall(SYS_sync_file_range, file, 0, 4096, SYNC_FILE_RANGE_WRITE));
  show("fdatasync", syscall(SYS_fdatasync, file));
  show("fsync", syscall(SYS_fsync, file));
  show("syncfs", syscall(SYS_syncfs, file));
  show("fsmount", syscall(SYS_fsmount, file, 0, 0));
  show("fchdir of a file", syscall(SYS_fchdir, file));
  int same = fcntl(file, F_DUPFD_CLOEXEC, 100), self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  show("kcmp", syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, file, same));
  int taken = (int)syscall(SYS_pidfd_getfd, self, file, 0);
  show("pidfd_getfd", taken >= 0 ? syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, file, taken) : -1);
  close(taken);
  close(self);
  close(same);
  close(file);
}

static void of_others(void) {
  int folder = open("/", O_RDONLY | O_DIRECTORY), space = open("/proc/self/ns/uts", O_RDONLY);
  show("fchdir", syscall(SYS_fchdir, folder));
  show("setns", syscall(SYS_setns, space, 0));
  show("setns of a folder", syscall(SYS_setns, folder, 0));
  int watches = inotify_init1(IN_CLOEXEC), watch = inotify_add_watch(watches, "/", IN_CREATE);
  show("inotify_rm_watch", syscall(SYS_inotify_rm_watch, watches, watch));
  int listener = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), pair[2];
  show("listen", syscall(SYS_listen, listener, 4));
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  show("shutdown", syscall(SYS_shutdown, pair[0], SHUT_RDWR));
  int from[2], to[2];
  CHECK(pipe(from) == 0 && pipe(to) == 0 && write(from[1], "twelve bytes", 12) == 12);
  show("tee", syscall(SYS_tee, from[0], to[1], 12, 0));
  for (int i = 0; i < 2; ++i) close(pair[i]), close(from[i]), close(to[i]);
  close(folder), close(space), close(watches), close(listener);
}

// Numbers that nobody told the program. Of those below the runtime's nothing is open, as natively.
static void of_nobody(void) {
  static const int numbers[] = {SYS_fsync,     SYS_fdatasync,       SYS_lseek,    SYS_flock,
                                SYS_readahead, SYS_fadvise64,       SYS_shutdown, SYS_listen,
                                SYS_syncfs,    SYS_sync_file_range, SYS_fchdir};
  enum { kCalls = sizeof numbers / sizeof *numbers };
  int first = open("/dev/null", O_RDONLY | O_CLOEXEC), done = 0;
  CHECK(first >= 0 && close(first) == 0);
  for (int file = first; file < kEnd; ++file)
    for (int i = 0; i < kCalls; ++i) {
      // An unlock, a place, a socket that would be shut: none of them an argument that is wrong by itself.
      long argument = numbers[i] == SYS_flock ? LOCK_UN : 0;
      long result = syscall(numbers[i], file, argument, numbers[i] == SYS_lseek ? SEEK_CUR : 0, 0);
      done += file < kFirstOfTheRuntime && (result != -1 || errno != EBADF);
    }
  show("done to nobody's", done);
}

int main(void) {
  check_preloaded();
  char* at = new_bytes();
  of_a_file();
  count_right("after calls on a file", at);
  of_others();
  count_right("after calls on others", at);
  of_nobody();
  count_right("after calls on all numbers", at);
  char* more = new_bytes();
  count_right("more", more);
  count_right("the first", at);
  return 0;
}
