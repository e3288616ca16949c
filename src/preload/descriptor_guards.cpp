#include "preload/descriptor_guards.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "base/readable.hpp"
#include "base/runtime_descriptors.hpp"
#include "base/units.hpp"
#include "kernel/kept_file.hpp"
#include "preload/descriptors.hpp"
#include "preload/held_for_call.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/system_calls.hpp"
#include "preload/uninterrupted.hpp"
#include "signal/self_paging.hpp"

// By the linker: where this library begins, and where its code ends.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));
extern "C" void hinterland_find_all_guarded();
extern "C" void hinterland_find_all_paths();

namespace hinterland::descriptor_guards {
namespace {

bool is_own_code(const void* caller) { return caller >= __ehdr_start && caller < etext; }

bool is_served(const void* caller) { return serves_program() && !is_own_code(caller); }

bool refused() {
  errno = EBADF;
  return true;
}

// No pointer is as low, and no descriptor as high.
bool may_be_descriptor(long argument) {
  constexpr long kEnd = 1 << 20;
  return argument >= hinterland_first_guarded && argument < kEnd;
}

bool hands_on_ours(const cmsghdr& head, const char* data, std::size_t bytes) {
  if (head.cmsg_level != SOL_SOCKET || head.cmsg_type != SCM_RIGHTS) return false;
  for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
    int descriptor;
    std::memcpy(&descriptor, data + at, sizeof descriptor);
    if (may_be_descriptor(descriptor) && descriptors::is_protected(descriptor)) return true;
  }
  return false;
}

bool hands_on_ours(const msghdr& message) {
  constexpr std::size_t kMost = 128 * kKiB;  // as the kernel, by default
  const std::size_t length = message.msg_controllen;
  if (message.msg_control == nullptr || length < sizeof(cmsghdr) || length > kMost) return false;
  HeldForCall held(message.msg_control, length);
  if (!is_readable(message.msg_control, length)) return false;
  const char* bytes = static_cast<const char*>(message.msg_control);
  for (std::size_t at = 0; at + sizeof(cmsghdr) <= length;) {
    cmsghdr head;
    std::memcpy(&head, bytes + at, sizeof head);
    if (head.cmsg_len < sizeof head || head.cmsg_len > length - at) return false;
    if (hands_on_ours(head, bytes + at + sizeof head, head.cmsg_len - sizeof head)) return true;
    at += CMSG_ALIGN(head.cmsg_len);
  }
  return false;
}

bool hands_on_ours(const msghdr* message) {
  HeldForCall held(message, sizeof *message);
  return is_readable(message, sizeof *message) && hands_on_ours(*message);
}

// Only of calls that may write, or cut.
struct Path {
  int at;
  const char* name;  // nullptr: none
};
Path path_of(long number, long a, long b, long c) {
  const auto* first = reinterpret_cast<const char*>(a);
  const auto* second = reinterpret_cast<const char*>(b);
  constexpr long kWrites = O_WRONLY | O_RDWR | O_TRUNC;
  switch (number) {
    case SYS_open:
      return {AT_FDCWD, (b & kWrites) != 0 ? first : nullptr};
    case SYS_creat:
    case SYS_truncate:
      return {AT_FDCWD, first};
    case SYS_openat:
      return {static_cast<int>(a), (c & kWrites) != 0 ? second : nullptr};
    case SYS_openat2:
      return {static_cast<int>(a), second};  // its flags lie behind a pointer
    default:
      return {AT_FDCWD, nullptr};
  }
}

bool leads_to_far_file(int at, const char* path) {
  struct stat status{};
  const long arguments[6] = {at, raw::word_of(path), raw::word_of(&status), 0, 0, 0};
  const bool holds = pager().faults_by_signal() && &hl_held_system_call != nullptr;
  const long result = holds ? hl_held_system_call(SYS_newfstatat, arguments)
                            : raw::call(SYS_newfstatat, arguments[0], arguments[1], arguments[2]);
  return result == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
         KeptFile::is_one(status.st_dev, status.st_ino);
}

// Where the kernel does not compare files, by the number.
bool is_copy_of_ours(int copy, int number) {
  const long self = raw::call(SYS_getpid);
  for (int ours = next_runtime_descriptor(0); ours >= 0; ours = next_runtime_descriptor(ours + 1)) {
    const long order = raw::call(SYS_kcmp, self, self, KCMP_FILE, copy, ours);
    if (order == 0 || (order < 0 && order != -EBADF && number == ours)) return true;
  }
  return false;
}

// Of a call by number: its second descriptor, or the first again.
long second_of(long number, long a, long b, long c) {
  switch (number) {
    case SYS_sendfile:
    case SYS_tee:
      return b;
    case SYS_splice:
    case SYS_copy_file_range:
      return c;
    default:
      return a;
  }
}

}  // namespace

void prepare() {
  uninterrupted([] {  // once, in the place of once for each of a hundred
    hinterland_find_all_guarded();
    hinterland_find_all_paths();
  });
}

bool refuses(int first, int second, const void* caller) {
  if (first < hinterland_first_guarded && second < hinterland_first_guarded) return false;
  if (!is_served(caller)) return false;
  return (descriptors::is_protected(first) || (second != first && descriptors::is_protected(second))) && refused();
}

bool refuses_messages(int socket, const mmsghdr* messages, unsigned count, const void* caller) {
  constexpr unsigned kMost = 1024;  // the kernel takes no more at once
  if (!is_served(caller)) return false;
  if (may_be_descriptor(socket) && descriptors::is_protected(socket)) return refused();
  for (unsigned i = 0; i < std::min(count, kMost); ++i)
    if (hands_on_ours(&messages[i].msg_hdr)) return refused();
  return false;
}

bool refuses_path(int at, const char* path, const void* caller) {
  if (!KeptFile::any() || !is_served(caller)) return false;
  if (!uninterrupted([at, path] { return leads_to_far_file(at, path); })) return false;
  errno = ENOENT;
  return true;
}

long copy_of_descriptor(int process, int descriptor, unsigned flags) {
  const long copy = raw::call(SYS_pidfd_getfd, process, descriptor, flags);
  if (copy < 0 || !serves_program()) return copy;
  return uninterrupted([copy, descriptor]() -> long {
    if (!is_copy_of_ours(static_cast<int>(copy), descriptor)) return copy;
    raw::call(SYS_close, copy);
    return -EBADF;
  });
}

bool refuses_call(long number, long a, long b, long c, long e) {
  using system_calls::Kind;
  const void* program = nullptr;  // whoever calls by number is not the runtime
  if (number == SYS_sendmsg || number == SYS_sendmmsg)
    return refuses_messages(static_cast<int>(a), reinterpret_cast<const mmsghdr*>(b),
                            number == SYS_sendmsg ? 1 : static_cast<unsigned>(c), program);
  if (const Path path = path_of(number, a, b, c); path.name != nullptr)
    return refuses_path(path.at, path.name, program);
  if (number == SYS_mmap) return may_be_descriptor(e) && refuses(static_cast<int>(e), static_cast<int>(e), program);
  // Those of which one only asks whether it can be read, and those that begin with the number of a process.
  if (number == SYS_epoll_wait || number == SYS_epoll_pwait || number == SYS_epoll_pwait2 || number == SYS_kcmp)
    return false;
  if (!system_calls::is_of(Kind::file, number) && !system_calls::is_of(Kind::file_pointer, number)) return false;
  const long second = second_of(number, a, b, c);
  if (!may_be_descriptor(a) && !may_be_descriptor(second)) return false;
  return refuses(may_be_descriptor(a) ? static_cast<int>(a) : -1,
                 may_be_descriptor(second) ? static_cast<int>(second) : -1, program);
}

}  // namespace hinterland::descriptor_guards
