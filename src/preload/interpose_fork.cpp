// fork and what libc builds on its own, internal fork: daemon, forkpty. vfork, posix_spawn, system and popen share
// the parent's memory until they exec, and need nothing.
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utmp.h>

#include <cerrno>

#include "preload/atfork.hpp"
#include "preload/forking.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"

namespace {

using namespace hinterland;

pid_t do_fork() {
  static constinit Next<pid_t()> next("fork");
  return serves_program() ? forking::fork_with_handlers() : next.get()();
}

// As glibc: the null device must really be it.
bool to_null_device() {
  int descriptor = open("/dev/null", O_RDWR);
  if (descriptor < 0) return false;
  struct stat status;
  bool genuine = fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  if (!genuine) {
    ::close(descriptor);
    errno = ENODEV;
    return false;
  }
  for (int standard = 0; standard < 3; ++standard) dup2(descriptor, standard);
  if (descriptor > 2) ::close(descriptor);
  return true;
}

}  // namespace

HL_INTERPOSED pid_t fork() noexcept { return do_fork(); }
HL_INTERPOSED pid_t __fork() noexcept { return do_fork(); }
HL_INTERPOSED pid_t _Fork() noexcept {
  static constinit Next<pid_t()> next("_Fork");
  return serves_program() ? forking::fork_plain() : next.get()();
}

HL_INTERPOSED int daemon(int no_chdir, int no_close) noexcept {
  static constinit Next<int(int, int)> next("daemon");
  if (!serves_program()) return next.get()(no_chdir, no_close);
  pid_t child = do_fork();
  if (child < 0) return -1;
  if (child > 0) _exit(0);
  if (setsid() < 0) return -1;
  if (no_chdir == 0 && chdir("/") != 0) return -1;
  return no_close != 0 || to_null_device() ? 0 : -1;
}

HL_INTERPOSED int forkpty(int* controller, char* name, const struct termios* settings,
                          const struct winsize* size) noexcept {
  static constinit Next<int(int*, char*, const struct termios*, const struct winsize*)> next("forkpty");
  if (!serves_program()) return next.get()(controller, name, settings, size);
  int ours, theirs;
  if (openpty(&ours, &theirs, name, settings, size) < 0) return -1;
  pid_t child = do_fork();
  if (child == 0) {
    ::close(ours);
    if (login_tty(theirs) != 0) _exit(1);
    return 0;
  }
  int saved_errno = errno;
  ::close(theirs);
  if (child < 0) {
    ::close(ours);
    errno = saved_errno;
    return -1;
  }
  *controller = ours;
  return child;
}

// Where pthread_atfork ends up (its code is linked into each object).
HL_INTERPOSED int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* dso) noexcept {
  static constinit Next<int(void (*)(), void (*)(), void (*)(), void*)> next("__register_atfork");
  if (mode() == Mode::native) return next.get()(prepare, parent, child, dso);
  return atfork::add(prepare, parent, child, dso);
}

// An object is unloaded (or the process ends): its handlers go with it.
HL_INTERPOSED void __cxa_finalize(void* dso) {
  static constinit Next<void(void*)> next("__cxa_finalize");
  atfork::remove_all_of(dso);
  next.get()(dso);
}
