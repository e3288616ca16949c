#include "kernel/descriptor_keeper.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "base/runtime_descriptors.hpp"

namespace hinterland {
namespace {

// Interface facts that Debian's headers lack.
constexpr unsigned kCloseRangeUnshare = 1u << 1;
constexpr unsigned kPidfdThread = O_EXCL;  // Linux 6.9

}  // namespace

int DescriptorKeeper::hold(std::span<const int> kept) {
  std::array<unsigned, kMax> sorted;
  std::size_t count = 0;
  for (int descriptor : kept)
    if (descriptor >= 0 && count < kMax) sorted[count++] = static_cast<unsigned>(descriptor);
  std::sort(sorted.begin(), sorted.begin() + count);
  // The first call makes the table our own and never copies what it closes. Raw: close_range() is the preloaded
  // library's, which spares the runtime's descriptors.
  unsigned flags = kCloseRangeUnshare, from = 0;
  for (std::size_t i = 0; i <= count; ++i) {
    unsigned next = i < count ? sorted[i] : UINT_MAX;
    unsigned last = i < count ? next - 1 : UINT_MAX;
    if (from <= last && next != 0) {
      long error = raw::call(SYS_close_range, static_cast<long>(from), static_cast<long>(last), flags);
      if (raw::failed(error)) {
        settle(0);
        return static_cast<int>(error);
      }
      flags = 0;
    }
    from = next + 1;
  }
  settle(gettid());
  std::atomic<std::uint32_t> never{0};
  for (;;) futex_wait(&never, 0);
}

void DescriptorKeeper::settle(pid_t thread) {
  thread_.store(thread, std::memory_order_release);  // pairs with take_back(): the table is as it stays
  settled_.store(1);
  futex_wake(&settled_, 1);
}

void DescriptorKeeper::wait_until_settled() {
  while (settled_.load() == 0) futex_wait(&settled_, 0);
}

void DescriptorKeeper::after_fork_in_child() {
  thread_.store(0, std::memory_order_relaxed);  // no other thread is there
  settled_.store(0, std::memory_order_relaxed);
}

int DescriptorKeeper::take_back(int kept) const {
  pid_t thread = thread_.load(std::memory_order_acquire);  // pairs with settle()
  if (thread == 0) return -ESRCH;
  long holder = raw::call(SYS_pidfd_open, thread, kPidfdThread);
  if (raw::failed(holder)) return static_cast<int>(holder);
  long taken = raw::call(SYS_pidfd_getfd, holder, kept, 0);
  raw::call(SYS_close, holder);
  if (raw::failed(taken)) return static_cast<int>(taken);
  // Where it was: another number may be that of another descriptor of ours, which is lost as well and not missed yet.
  long high = raw::call(SYS_fcntl, taken, F_DUPFD_CLOEXEC, std::max(kept, kFirstRuntimeDescriptor));
  if (raw::failed(high)) {
    note_runtime_descriptor(static_cast<int>(taken));
    return static_cast<int>(taken);
  }
  raw::call(SYS_close, taken);
  return static_cast<int>(high);
}

}  // namespace hinterland
