// Linux behind the kernel contract: userfaultfd, process_madvise, /proc/self.
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "kernel/descriptor_keeper.hpp"
#include "kernel/high_descriptor.hpp"
#include "kernel/kept_file.hpp"
#include "kernel/kernel.hpp"
#include "kernel/probe.hpp"
#include "kernel/proc_file.hpp"
#include "kernel/process_sizes.hpp"
#include "kernel/userfaultfd_abi.hpp"

namespace hinterland {
namespace {

std::int64_t result_of(int status, std::int64_t done) {
  if (status == 0) return done;
  int error = errno;
  return done > 0 ? done : -error;  // part of the range was done before the failure
}

// Of this thread (Kernel::wake_later).
struct WakeLater {
  std::uintptr_t address = 0;
  std::size_t length = 0;
  bool covers(std::uintptr_t first, std::size_t bytes) const {
    return length != 0 && first >= address && first + bytes <= address + length;
  }
};
__attribute__((tls_model("initial-exec"))) thread_local WakeLater t_wake_later;

// Of this thread (Kernel::watch_for_wake).
struct WakeWatch {
  std::uintptr_t address = 0;  // 0: nothing is watched for
  std::uint64_t woken_ns = 0;
  void about_to_wake(std::uintptr_t first, std::size_t bytes) {
    if (address == 0 || address - first >= bytes) return;
    woken_ns = now_ns();
    address = 0;
  }
};
__attribute__((tls_model("initial-exec"))) thread_local WakeWatch t_wake_watch;

class RealKernel final : public Kernel {
 public:
  void deliver_faults_by(FaultDelivery delivery) override { delivery_ = delivery; }
  Status open() override;
  const KernelFeatures& features() const override { return features_; }
  int fault_descriptor() const override { return fault_fd_.load(std::memory_order_relaxed); }
  int keep_descriptors() override;
  void wait_until_kept() override { keeper_.wait_until_settled(); }

  int register_range(std::uintptr_t address, std::size_t length) override;
  int unregister_range(std::uintptr_t address, std::size_t length) override;
  int read_faults(std::span<FaultMessage> messages, bool block) override;
  int look_for_faults(std::span<FaultMessage> messages) override;
  std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) override;
  std::int64_t copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) override;
  void expect_unwaited_copies() override;
  std::int64_t zero(std::uintptr_t target, std::size_t length) override;
  std::int64_t move(std::uintptr_t target, std::uintptr_t source, std::size_t length) override;
  int write_protect(std::uintptr_t address, std::size_t length, bool protect) override;
  int wake(std::uintptr_t address, std::size_t length) override;
  void watch_for_wake(std::uintptr_t address) override { t_wake_watch = {address, 0}; }
  std::uint64_t woken_ns() const override { return t_wake_watch.woken_ns; }
  void wake_later(std::uintptr_t address, std::size_t length) override { t_wake_later = {address, length}; }
  void wake_together(std::uintptr_t address, std::size_t length) override {
    t_wake_later = {};
    wake(address, length);
  }
  int poison(std::uintptr_t address, std::size_t length) override;
  int discard(std::span<const iovec> ranges) override;
  int present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) override;
  PresentRuns present_runs(std::uintptr_t start, std::uintptr_t end, std::span<iovec> runs) override;
  MappingAt mapping_at(std::uintptr_t address) override;
  void make_exclusive_for_reading(std::uintptr_t address) override;
  int make_exclusive(std::uintptr_t address) override;
  std::int64_t read_memory(void* target, std::uintptr_t source, std::size_t length) override;
  std::uint64_t resident_anonymous_bytes() override;

 private:
  void set_blocking(bool block);
  ssize_t look(std::span<uffd_msg> raw);
  static int unpack(std::span<const uffd_msg> raw, std::span<FaultMessage> messages);
  static constexpr std::size_t kMessagesMax = 64;
  static constexpr std::size_t kLookPages = 256;  // as many as an evictor takes at once
  bool resident(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits);
  std::int64_t moved_without_a_word(std::uintptr_t target, std::uintptr_t source, std::size_t length);
  int discard_one_by_one(std::span<const iovec> ranges);

  std::int64_t copy_through_faults(std::uintptr_t target, const void* source, std::size_t length, __u64 mode);
  std::int64_t copy_by(int descriptor, std::uintptr_t target, const void* source, std::size_t length, __u64 mode);
  void open_copiers();

  // call(descriptor) with the fault descriptor; once more after the program had closed it, or put a file of its own
  // in its place. What call() says; errno is the call's.
  template <typename Call>
  auto with_faults(Call&& call);
  bool take_faults_back(int lost);

  // Descriptors with nothing registered, to copy through. Each copy counts up and down in its descriptor (two words
  // of the file, two of what it stands for), and on one for all threads those words travel from CPU to CPU: with two
  // threads a tenth of a hinted miss. Linux asks that the target is registered, not with which descriptor.
  static constexpr std::size_t kCopiers = 8;
  std::array<std::atomic<int>, kCopiers> copiers_ = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::atomic<bool> copies_unwaited_{false};
  std::atomic<bool> copiers_work_{true};  // else this kernel asks for more than we know of

  FaultDelivery delivery_ = FaultDelivery::messages;
  KernelFeatures features_;
  // A relaxed word: any thread may find the old number for a while, and then goes through take_faults_back().
  std::atomic<int> fault_fd_{-1};
  int kept_fault_fd_ = -1;  // its number in the keeper's table
  DescriptorKeeper keeper_;
  Mutex taking_back_;
  int self_fd_ = -1;  // pidfd of this process, or abi::kPidfdSelfThreadGroup
  // Opened early: a program that has become another user is not let into its own /proc/self, nor are its children.
  ProcFile pagemap_, maps_, memory_;
  int device_fd_ = -1;  // with which such a program's children have userfaultfds of their own; of no one process
  bool blocking_ = true;
};

Status RealKernel::open() {
  // In a forked child the inherited descriptors are the parent's: only the child's copies of the numbers are closed.
  close_high(fault_fd_.exchange(-1));
  close_high(std::exchange(self_fd_, -1));
  ProcFile::close_all_after_fork();
  keeper_.after_fork_in_child();
  KeptFile::after_fork_in_child();
  taking_back_.reset_after_fork();
  for (std::atomic<int>& copier : copiers_) close_high(copier.exchange(-1));
  if (device_fd_ < 0 && (device_fd_ = open_fault_device()) >= 0) device_fd_ = move_high(device_fd_);
  blocking_ = true;

  Result<ProbedDescriptor> opened = open_fault_descriptor(delivery_, device_fd_);
  if (!opened) return std::unexpected(opened.error());
  const int faults = move_high(opened->descriptor);
  if (faults < 0) return std::unexpected(Error::make(-faults, "the program closed the descriptor of page faults"));
  fault_fd_ = faults;
  features_ = opened->features;

  self_fd_ = pidfd_for_self_advice();
  if (self_fd_ >= 0 && (self_fd_ = move_high(self_fd_)) < 0) self_fd_ = -1;
  features_.vectored_discard = self_fd_ != -1;
  pagemap_.open("/proc/self/pagemap");
  maps_.open("/proc/self/maps");
  memory_.open("/proc/self/mem");
  open_process_sizes();
  uffd_msg none;
  features_.look_for_faults = look({&none, 1}) < 0 && errno == EAGAIN;
  if (copies_unwaited_.load()) open_copiers();
  return {};
}

int RealKernel::keep_descriptors() {
  kept_fault_fd_ = fault_fd_.load();
  std::array<int, 1 + KeptFile::kMax> kept;
  kept[0] = kept_fault_fd_;
  std::size_t files = KeptFile::begin_keeping(keeper_, std::span(kept).subspan(1));
  return keeper_.hold(std::span(kept).first(1 + files));
}

// EBADF: the program closed it. ENOTTY: it has put a file of its own in its place.
template <typename Call>
auto RealKernel::with_faults(Call&& call) {
  int descriptor = fault_fd_.load(std::memory_order_relaxed);
  auto status = call(descriptor);
  if (status >= 0 || (errno != EBADF && errno != ENOTTY) || !take_faults_back(descriptor)) return status;
  return call(fault_fd_.load(std::memory_order_relaxed));
}

bool RealKernel::take_faults_back(int lost) {
  LockGuard guard(taking_back_);
  if (fault_fd_.load() != lost) return true;  // another thread has done it
  int error = errno, fresh = keeper_.take_back(kept_fault_fd_, lost);
  if (fresh >= 0) fault_fd_.store(fresh);
  errno = error;
  return fresh >= 0;
}

int RealKernel::register_range(std::uintptr_t address, std::size_t length) {
  uffdio_register request{};
  request.range = {address, length};
  request.mode = UFFDIO_REGISTER_MODE_MISSING | (features_.write_protect ? UFFDIO_REGISTER_MODE_WP : 0);
  if (with_faults([&](int faults) { return ioctl(faults, UFFDIO_REGISTER, &request); }) != 0) return -errno;
  // The kernel serves no faults while it dumps core: it would write zeros for pages that are far (I4). Better none.
  raw::checked(SYS_madvise, address, length, MADV_DONTDUMP);
  return 0;
}

int RealKernel::unregister_range(std::uintptr_t address, std::size_t length) {
  uffdio_range range{address, length};
  return with_faults([&](int faults) { return ioctl(faults, UFFDIO_UNREGISTER, &range); }) == 0 ? 0 : -errno;
}

// poll() on a blocking userfaultfd reports an error, and a non-blocking one cannot sleep in read(): so the mode
// follows the use. Synchronous devices always block in read(), which saves a system call a fault.
void RealKernel::set_blocking(bool block) {
  if (blocking_ == block) return;
  const int mode = block ? 0 : O_NONBLOCK;  // the only flag that it can have of those that this sets
  // Also of a descriptor that the program has just closed: taken back, it is in the mode that it was in.
  if (with_faults([mode](int faults) { return fcntl(faults, F_SETFL, mode); }) == 0) blocking_ = block;
}

int RealKernel::read_faults(std::span<FaultMessage> messages, bool block) {
  set_blocking(block);
  std::array<uffd_msg, kMessagesMax> raw;
  std::size_t wanted = std::min(messages.size(), raw.size());
  ssize_t got = with_faults([&](int faults) { return read(faults, raw.data(), wanted * sizeof(uffd_msg)); });
  if (got < 0) return errno == EAGAIN ? 0 : -errno;
  return unpack(std::span(raw).first(static_cast<std::size_t>(got) / sizeof(uffd_msg)), messages);
}

int RealKernel::look_for_faults(std::span<FaultMessage> messages) {
  std::array<uffd_msg, kMessagesMax> raw;
  ssize_t got = look(std::span(raw).first(std::min(messages.size(), raw.size())));
  if (got < 0) return errno == EAGAIN ? 0 : -errno;
  return unpack(std::span(raw).first(static_cast<std::size_t>(got) / sizeof(uffd_msg)), messages);
}

// Whether read() waits is a property of the descriptor, which all threads share; of preadv2() it is one of the call.
ssize_t RealKernel::look(std::span<uffd_msg> raw) {
  iovec place{raw.data(), raw.size_bytes()};
  return with_faults([&](int faults) { return preadv2(faults, &place, 1, -1, RWF_NOWAIT); });
}

int RealKernel::unpack(std::span<const uffd_msg> raw, std::span<FaultMessage> messages) {
  int count = 0;
  for (const uffd_msg& message : raw) {
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const auto& fault = message.arg.pagefault;
    messages[static_cast<std::size_t>(count++)] = {page_floor(fault.address), fault.feat.ptid,
                                                   (fault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0,
                                                   (fault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0};
  }
  return count;
}

std::int64_t RealKernel::copy_by(int descriptor, std::uintptr_t target, const void* source, std::size_t length,
                                 __u64 mode) {
  uffdio_copy request{};
  request.dst = target;
  request.src = reinterpret_cast<std::uintptr_t>(source);
  request.len = length;
  request.mode = mode;
  int status = ioctl(descriptor, UFFDIO_COPY, &request);
  return result_of(status, request.copy);
}

std::int64_t RealKernel::copy_through_faults(std::uintptr_t target, const void* source, std::size_t length,
                                             __u64 mode) {
  std::int64_t done = 0;
  with_faults([&](int faults) {
    done = copy_by(faults, target, source, length, mode);
    if (done < 0) errno = static_cast<int>(-done);
    return done < 0 ? -1 : 0;
  });
  return done;
}

std::int64_t RealKernel::copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) {
  __u64 mode = protect && features_.write_protect ? UFFDIO_COPY_MODE_WP : 0;
  if (t_wake_later.covers(target, length))
    mode |= UFFDIO_COPY_MODE_DONTWAKE;
  else
    t_wake_watch.about_to_wake(target, length);
  return copy_through_faults(target, source, length, mode);
}

// Where it does not work through a copier, it is copied as ever: the mapping may have gone, the program may have
// closed the descriptor by a raw system call, or this kernel refuses.
std::int64_t RealKernel::copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) {
  __u64 mode = UFFDIO_COPY_MODE_DONTWAKE | (protect && features_.write_protect ? UFFDIO_COPY_MODE_WP : 0);
  // relaxed: a descriptor is in the process's table before it is stored, and any of them will do
  int copier = -1;
  if (copiers_work_.load(std::memory_order_relaxed))
    copier = copiers_[static_cast<unsigned>(std::max(sched_getcpu(), 0)) % kCopiers].load(std::memory_order_relaxed);
  if (copier < 0) return copy_through_faults(target, source, length, mode);
  std::int64_t done = copy_by(copier, target, source, length, mode);
  if (done > 0 || done == -EEXIST || done == -EAGAIN || done == -ENOMEM) return done;
  done = copy_through_faults(target, source, length, mode);
  if (done > 0) copiers_work_.store(false, std::memory_order_relaxed);
  return done;
}

void RealKernel::expect_unwaited_copies() {
  if (!copies_unwaited_.exchange(true)) open_copiers();
}

// As many as threads can run at the same time; where they cannot be had, it goes without.
void RealKernel::open_copiers() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(kCopiers, static_cast<std::size_t>(CPU_COUNT(&allowed))); ++i) {
    Result<ProbedDescriptor> opened = open_fault_descriptor(delivery_, device_fd_);
    if (!opened) return;
    if (const int high = move_high(opened->descriptor); high >= 0) copiers_[i].store(high);
  }
}

std::int64_t RealKernel::zero(std::uintptr_t target, std::size_t length) {
  uffdio_zeropage request{};
  request.range = {target, length};
  if (t_wake_later.covers(target, length))
    request.mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE;
  else
    t_wake_watch.about_to_wake(target, length);
  int status = with_faults([&](int faults) { return ioctl(faults, UFFDIO_ZEROPAGE, &request); });
  return result_of(status, request.zeropage);
}

std::int64_t RealKernel::move(std::uintptr_t target, std::uintptr_t source, std::size_t length) {
  abi::uffdio_move request{};
  request.dst = target;
  request.src = source;
  request.len = length;
  t_wake_watch.about_to_wake(target, length);
  int status = with_faults([&](int faults) { return ioctl(faults, abi::kIoctlMove, &request); });
  std::int64_t done = result_of(status, request.move);
  if (done == static_cast<std::int64_t>(length) || (done < 0 && done != -EEXIST)) return done;
  std::int64_t counted = std::max<std::int64_t>(done, 0);
  std::size_t at = static_cast<std::size_t>(counted);
  std::int64_t more = moved_without_a_word(target + at, source + at, length - at);
  if (more <= 0) return done;
  wake(target + at, static_cast<std::size_t>(more));  // the kernel wakes for what it counts only
  return counted + more;
}

// As present(), but with less where the program has used up its descriptors: then a swapped page counts as gone.
bool RealKernel::resident(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) {
  if (present(address, pages, bits) == 0) return true;
  std::array<unsigned char, kLookPages> there{};
  if (raw::checked(SYS_mincore, address, bytes_of_pages(pages), there.data()) != 0) return false;
  std::fill(bits.begin(), bits.end(), 0);
  for (std::size_t i = 0; i < pages; ++i) bits[i / 64] |= std::uint64_t{there[i] & 1u} << (i % 64);
  return true;
}

// Linux 6.18 (and what took its batched MOVE) forgets to count pages that it moves at a second attempt, after another
// thread was in the way: it tries a third time, finds them at the target, and says EEXIST, or how many it had moved
// before. Taken at its word, it loses these pages: the program's page is gone, and reads as zeros (I4). Bytes at the
// start of the range that are at the target and not at the source.
std::int64_t RealKernel::moved_without_a_word(std::uintptr_t target, std::uintptr_t source, std::size_t length) {
  std::int64_t moved = 0;
  for (std::size_t pages = length >> kPageShift; pages > 0;) {
    std::size_t step = std::min(pages, kLookPages);
    std::array<std::uint64_t, kLookPages / 64> arrived{}, left{};
    if (!resident(target, step, arrived) || !resident(source, step, left)) return moved;
    for (std::size_t i = 0; i < step; ++i, moved += kPageSize)
      if ((arrived[i / 64] >> (i % 64) & 1) == 0 || (left[i / 64] >> (i % 64) & 1) != 0) return moved;
    target += bytes_of_pages(step);
    source += bytes_of_pages(step);
    pages -= step;
  }
  return moved;
}

int RealKernel::write_protect(std::uintptr_t address, std::size_t length, bool protect) {
  uffdio_writeprotect request{};
  request.range = {address, length};
  request.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  if (!protect && t_wake_later.covers(address, length))
    request.mode |= UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
  else if (!protect)
    t_wake_watch.about_to_wake(address, length);
  return with_faults([&](int faults) { return ioctl(faults, UFFDIO_WRITEPROTECT, &request); }) == 0 ? 0 : -errno;
}

int RealKernel::wake(std::uintptr_t address, std::size_t length) {
  if (t_wake_later.covers(address, length)) return 0;
  t_wake_watch.about_to_wake(address, length);
  uffdio_range range{address, length};
  return with_faults([&](int faults) { return ioctl(faults, UFFDIO_WAKE, &range); }) == 0 ? 0 : -errno;
}

int RealKernel::poison(std::uintptr_t address, std::size_t length) {
  if (features_.poison) {
    abi::uffdio_poison request{};
    request.range = {address, length};
    if (with_faults([&](int faults) { return ioctl(faults, abi::kIoctlPoison, &request); }) == 0) return 0;
    if (errno != EINVAL) return -errno;
  }
  // Before 6.6: a mapping of an empty file raises SIGBUS just as well.
  int empty = memfd_create("hinterland-lost", MFD_CLOEXEC);
  if (empty < 0) return -errno;
  void* mapped =
      mmap(reinterpret_cast<void*>(address), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0);
  int error = mapped == MAP_FAILED ? -errno : 0;
  close(empty);
  if (error == 0) wake(address, length);
  return error;
}

int RealKernel::discard_one_by_one(std::span<const iovec> ranges) {
  int error = 0;
  for (const iovec& range : ranges)
    if (madvise(range.iov_base, range.iov_len, MADV_DONTNEED) != 0) error = -errno;
  return error;
}

int RealKernel::discard(std::span<const iovec> ranges) {
  constexpr std::size_t kRangesMax = 1024;  // UIO_MAXIOV
  if (self_fd_ == -1 || ranges.size() == 1) return discard_one_by_one(ranges);
  while (!ranges.empty()) {
    std::span<const iovec> part = ranges.first(std::min(ranges.size(), kRangesMax));
    std::size_t bytes = 0;
    for (const iovec& range : part) bytes += range.iov_len;
    long done = raw::checked(SYS_process_madvise, self_fd_, part.data(), part.size(), MADV_DONTNEED, 0);
    // Stopped half-way (a hole, a signal): dropping a range twice is harmless.
    if (done < 0 || static_cast<std::size_t>(done) != bytes)
      if (int error = discard_one_by_one(part); error != 0) return error;
    ranges = ranges.subspan(part.size());
  }
  return 0;
}

int RealKernel::present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) {
  // mincore answers "yes" surely and cheaply; its "no" may also mean swapped.
  if (unsigned char there = 0;
      pages == 1 && raw::checked(SYS_mincore, address, kPageSize, &there) == 0 && (there & 1) != 0) {
    bits[0] = 1;
    return 0;
  }
  std::fill(bits.begin(), bits.end(), 0);
  std::array<std::uint64_t, 512> entries;
  int error = 0;
  for (std::size_t at = 0; at < pages && error == 0;) {
    std::size_t wanted = std::min(entries.size(), pages - at) * sizeof(std::uint64_t);
    std::int64_t got =
        pagemap_.read_at(entries.data(), wanted, ((address >> kPageShift) + at) * sizeof(std::uint64_t));
    if (got <= 0) {
      error = got < 0 ? static_cast<int>(got) : -EIO;
      break;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(std::uint64_t); ++i, ++at)
      if ((entries[i] & (abi::kPagemapPresent | abi::kPagemapSwapped)) != 0) bits[at / 64] |= 1ull << (at % 64);
  }
  return error;
}

PresentRuns RealKernel::present_runs(std::uintptr_t start, std::uintptr_t end, std::span<iovec> runs) {
  std::array<abi::page_region, 256> found;
  constexpr __u64 kThere = abi::kPageIsPresent | abi::kPageIsSwapped;
  abi::pm_scan_arg request{};
  request.size = sizeof request;
  request.start = start;
  request.end = end;
  request.vec = reinterpret_cast<__u64>(found.data());
  request.vec_len = std::min(found.size(), runs.size());
  request.category_anyof_mask = request.return_mask = kThere;
  const int count = pagemap_.control(abi::kIoctlPagemapScan, &request);
  if (count < 0) return Kernel::present_runs(start, end, runs);
  for (int i = 0; i < count; ++i) runs[i] = {reinterpret_cast<void*>(found[i].start), found[i].end - found[i].start};
  return {0, static_cast<std::size_t>(count), request.walk_end};
}

// Interface facts that Debian's headers lack (Linux 6.11, include/uapi/linux/fs.h).
namespace procmap {
struct Query {
  __u64 size, flags, address;
  __u64 start, end, protection, page_bytes, offset, inode;
  __u32 device_major, device_minor, name_size, build_id_size;
  __u64 name, build_id;
};
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr __u64 kProtectionMask = PROT_READ | PROT_WRITE | PROT_EXEC;  // its bits are those of mmap
}  // namespace procmap

MappingAt RealKernel::mapping_at(std::uintptr_t address) {
  procmap::Query query{};
  query.size = sizeof query;
  query.address = address;
  if (const int error = maps_.control(procmap::kQuery, &query); error != 0) return {error, 0};
  return {static_cast<int>(query.protection & procmap::kProtectionMask), query.end};
}

// A pin for reading, if only for this moment, is none of a page that is shared (5.19).
void RealKernel::make_exclusive_for_reading(std::uintptr_t address) {
  char byte;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(address), 1};
  raw::checked(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0);
}

int RealKernel::make_exclusive(std::uintptr_t address) {
  // A write fault without a write breaks the sharing. Not an access of ours: the program may make the page read-only
  // or unmap it at this moment, and that must be an error here, not a signal. (5.14; pages are shared only where MOVE
  // says so, which is younger.)
  return raw::checked(SYS_madvise, address, kPageSize, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
}

std::int64_t RealKernel::read_memory(void* target, std::uintptr_t source, std::size_t length) {
  return memory_.read_at(target, length, source);
}

std::uint64_t RealKernel::resident_anonymous_bytes() {
  const ProcessSizes sizes = process_sizes();
  return sizes.resident - sizes.shared;
}

}  // namespace

Kernel& real_kernel() {
  // Never destroyed: faults are served until the process is gone.
  alignas(RealKernel) static char storage[sizeof(RealKernel)];
  static RealKernel* kernel = new (storage) RealKernel;
  return *kernel;
}

}  // namespace hinterland
