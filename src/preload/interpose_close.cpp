// close and its kin: to the program, the runtime's descriptors are not open.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>

#include "preload/descriptor_guards.hpp"
#include "preload/descriptors.hpp"
#include "preload/held_for_call.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

extern "C" {
int __close(int descriptor);
int __dup2(int from, int to);
int __fcntl(int descriptor, int command, ...);
}

namespace {

using namespace hinterland;

bool is_protected(int descriptor) { return serves_program() && descriptors::is_protected(descriptor); }

int bad_descriptor() {
  errno = EBADF;
  return -1;
}

int as_libc(long result) {
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

int close_range_raw(unsigned first, unsigned last, int flags) {
  return static_cast<int>(raw::call(SYS_close_range, first, last, flags));
}

int close_parts(unsigned first, unsigned last, int flags) {
  if (!serves_program() || first > last) return close_range_raw(first, last, flags);
  return uninterrupted([=] {
    return descriptors::for_unprotected(first, last,
                                        [flags](unsigned a, unsigned b) { return close_range_raw(a, b, flags); });
  });
}

// What is asked about descriptors to find out which are open.
int status_of(int descriptor, void* status) {
  if (is_protected(descriptor)) return bad_descriptor();
  HeldForCall held(status, sizeof(struct stat));
  return as_libc(raw::call(SYS_fstat, descriptor, reinterpret_cast<long>(status)));
}

}  // namespace

HL_INTERPOSED int fstat(int descriptor, struct stat* status) noexcept { return status_of(descriptor, status); }
HL_INTERPOSED int fstat64(int descriptor, struct stat64* status) noexcept { return status_of(descriptor, status); }
// The one further argument, if any, is an int or a pointer.
HL_INTERPOSED int fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  HeldForCall held(argument, sizeof(struct flock));
  return is_protected(descriptor) ? bad_descriptor() : __fcntl(descriptor, command, argument);
}
HL_INTERPOSED int fcntl64(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  HeldForCall held(argument, sizeof(struct flock));
  return is_protected(descriptor) ? bad_descriptor() : __fcntl(descriptor, command, argument);
}
HL_INTERPOSED FILE* fdopen(int descriptor, const char* mode) noexcept {
  static constinit Next<FILE*(int, const char*)> next("fdopen");
  if (!is_protected(descriptor)) return next.get()(descriptor, mode);
  errno = EBADF;
  return nullptr;
}

HL_INTERPOSED int dup(int descriptor) noexcept {
  if (is_protected(descriptor)) return bad_descriptor();
  return as_libc(raw::call(SYS_dup, descriptor));
}
HL_INTERPOSED int pidfd_getfd(int process, int descriptor, unsigned flags) noexcept {
  return as_libc(descriptor_guards::copy_of_descriptor(process, descriptor, flags));
}
HL_INTERPOSED int close(int descriptor) { return is_protected(descriptor) ? bad_descriptor() : __close(descriptor); }
HL_INTERPOSED int dup2(int from, int to) noexcept {
  return is_protected(from) || is_protected(to) ? bad_descriptor() : __dup2(from, to);
}
HL_INTERPOSED int dup3(int from, int to, int flags) noexcept {
  if (is_protected(from) || is_protected(to)) return bad_descriptor();
  return as_libc(raw::call(SYS_dup3, from, to, flags));
}
HL_INTERPOSED int close_range(unsigned first, unsigned last, int flags) noexcept {
  return as_libc(close_parts(first, last, flags));
}
HL_INTERPOSED void closefrom(int lowest) noexcept {
  static constinit Next<void(int)> next("closefrom");
  unsigned first = lowest < 0 ? 0 : static_cast<unsigned>(lowest);
  if (!serves_program() || close_parts(first, UINT_MAX, 0) == -ENOSYS) next.get()(lowest);
}
