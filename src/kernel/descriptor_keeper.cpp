#include "kernel/descriptor_keeper.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
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

// Between the calls that take a file back its number may become another file's. True also where the kernel does not
// tell.
bool is_same_file(int ours, pid_t thread, int theirs) {
  long order = raw::call(SYS_kcmp, raw::call(SYS_gettid), thread, KCMP_FILE, ours, theirs);
  return order <= 0;
}

// As copy_high(). Raw: fcntl() is the preloaded library's, to which the runtime's descriptors are not open.
long copy_high_raw(int taken, int first) {
  for (int from = first;;) {
    const long high = raw::call(SYS_fcntl, taken, F_DUPFD_CLOEXEC, from);
    if (raw::failed(high) || !is_noted_runtime_descriptor(static_cast<int>(high))) return high;
    raw::call(SYS_close, high);
    from = static_cast<int>(high) + 1;
  }
}

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

int DescriptorKeeper::take_back(int kept, int lost) const {
  constexpr int kTries = 100;  // the program would have to close it each time within some microseconds
  pid_t thread = thread_.load(std::memory_order_acquire);  // pairs with settle()
  if (thread == 0) return -ESRCH;
  int taken = -EBADF;
  forget_runtime_descriptor(lost);  // its old number is as good as any
  for (int tries = 0; tries < kTries && taken == -EBADF; ++tries) taken = take_once(thread, kept);
  note_runtime_descriptor(taken >= 0 ? taken : lost);
  return taken;
}

// -EBADF: the program closed it meanwhile, or there is no such descriptor.
int DescriptorKeeper::take_once(pid_t thread, int kept) {
  long holder = raw::call(SYS_pidfd_open, thread, kPidfdThread);
  if (raw::failed(holder)) return static_cast<int>(holder);
  long taken = raw::call(SYS_pidfd_getfd, holder, kept, 0);
  raw::call(SYS_close, holder);
  if (raw::failed(taken)) return static_cast<int>(taken);
  long high = copy_high_raw(static_cast<int>(taken), std::max(kept, kFirstRuntimeDescriptor));
  if (high == -EBADF) return -EBADF;
  if (raw::failed(high))
    high = taken;
  else
    raw::call(SYS_close, taken);
  if (is_same_file(static_cast<int>(high), thread, kept)) return static_cast<int>(high);
  raw::call(SYS_close, high);
  return -EBADF;
}

}  // namespace hinterland
