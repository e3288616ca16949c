#include "preload/process_advice.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/units.hpp"
#include "preload/held_for_call.hpp"
#include "preload/mappings.hpp"
#include "preload/pieces.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::mappings {
namespace {

constexpr std::size_t kRangesMax = 1024;                    // UIO_MAXIOV
constexpr int kSelfThread = -10000, kSelfProcess = -10001;  // PIDFD_SELF_*, 6.14

long ask(int process, const iovec* ranges, std::size_t count, int advice, unsigned flags) {
  return raw::call(SYS_process_madvise, process, reinterpret_cast<long>(ranges), static_cast<long>(count), advice,
                   static_cast<int>(flags));
}

// Interface facts that Debian's headers lack (Linux 6.13, include/uapi/linux/pidfd.h).
struct PidfdInfo {
  std::uint64_t mask, cgroup;
  std::uint32_t thread, process, parent;
  std::array<std::uint32_t, 8> users;
  std::uint32_t status;
};
constexpr unsigned long kPidfdGetInfo = _IOWR(0xff, 11, PidfdInfo);

// What the kernel, or before Linux 6.13 /proc, says that a descriptor of a process stands for.
bool is_own_process(int process) {
  if (process == kSelfThread || process == kSelfProcess) return true;
  PidfdInfo info{};
  if (raw::call(SYS_ioctl, process, static_cast<long>(kPidfdGetInfo), reinterpret_cast<long>(&info)) == 0)
    return info.process == static_cast<std::uint32_t>(raw::call(SYS_getpid));
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", process);
  long file = raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path.data()), O_RDONLY | O_CLOEXEC);
  if (raw::failed(file)) return false;
  std::array<char, 512> text{};
  raw::call(SYS_read, file, reinterpret_cast<long>(text.data()), static_cast<long>(text.size() - 1));
  raw::call(SYS_close, file);
  const char* line = std::strstr(text.data(), "\nPid:");
  return line != nullptr && std::strtol(line + 5, nullptr, 10) == raw::call(SYS_getpid);
}

// The program's vector, some entries at a time: a wrong pointer is an error, not a signal.
class Ranges {
 public:
  Ranges(const iovec* all, std::size_t count) : all_(all), count_(count) {}
  // nullptr at the end, or where it cannot be read.
  const iovec* next() {
    if (at_ == count_) return nullptr;
    if (at_ % part_.size() == 0 && !read_part()) return nullptr;
    return &part_[at_++ % part_.size()];
  }
  bool unreadable() const { return unreadable_; }

 private:
  bool read_part() {
    std::size_t bytes = std::min(part_.size(), count_ - at_) * sizeof(iovec);
    HeldForCall held(all_ + at_, bytes);
    iovec here{part_.data(), bytes}, there{const_cast<iovec*>(all_) + at_, bytes};
    long got = raw::call(SYS_process_vm_readv, raw::call(SYS_getpid), reinterpret_cast<long>(&here), 1,
                         reinterpret_cast<long>(&there), 1, 0);
    unreadable_ = got != static_cast<long>(bytes);
    return !unreadable_;
  }
  const iovec* all_;
  std::size_t count_, at_ = 0;
  std::array<iovec, 16> part_{};
  bool unreadable_ = false;
};

bool any_is_far(const iovec* ranges, std::size_t count) {
  Ranges all(ranges, count);
  while (const iovec* range = all.next())
    if (range->iov_len != 0 && pager().overlaps(reinterpret_cast<std::uintptr_t>(range->iov_base), range->iov_len))
      return true;
  return false;
}

}  // namespace

long advise_process(int process, const iovec* ranges, std::size_t count, int advice, unsigned flags) {
  if (count > kRangesMax || !any_is_far(ranges, count) || !is_own_process(process))
    return ask(process, ranges, count, advice, flags);
  // Advice, flags and rights are judged before any range: by asking about none.
  if (long refused = ask(process, nullptr, 0, advice, flags); raw::failed(refused)) return refused;
  Ranges all(ranges, count);
  long done = 0;
  while (const iovec* range = all.next()) {
    if (range->iov_len == 0) continue;
    int error = advise(reinterpret_cast<std::uintptr_t>(range->iov_base), range->iov_len, advice);
    if (error != 0) return done > 0 ? done : error;
    done += static_cast<long>(range->iov_len);
  }
  return all.unreadable() ? -EFAULT : done;
}

int make_way_for_segment(int segment, std::uintptr_t address, int flags) {
  if ((flags & SHM_RND) != 0) address = page_floor(address);
  shmid_ds about{};
  long asked = raw::call(SYS_shmctl, segment, IPC_STAT, reinterpret_cast<long>(&about));
  if (raw::failed(asked) || address == 0 || page_floor(address) != address)
    return 0;  // the kernel says what is wrong
  std::size_t length = page_ceil(about.shm_segsz);
  if (!pager().overlaps(address, length)) return 0;
  if (!pager().overlaps_window(address, length)) {
    auto end_of_piece = [](std::uintptr_t at, std::uintptr_t end) { return pager().end_of_piece(at, end); };
    return for_pieces(address, length, end_of_piece, [](std::uintptr_t at, std::size_t bytes) {
      return pager().contains(at) ? uninterrupted([=] { return pager().surrender(at, bytes); }) : 0;
    });
  }
  if (!pager().in_window(address) || !pager().in_window(address + length - 1)) return -EINVAL;  // across the edge
  return uninterrupted([=] { return pager().surrender(address, length); });
}

}  // namespace hinterland::mappings
