#include "kernel/faulted_range.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "kernel/high_descriptor.hpp"
#include "kernel/probe.hpp"
#include "kernel/userfaultfd_abi.hpp"

namespace hinterland {
namespace {

constexpr int kWaitMs = 1000;  // a descriptor that the program has closed is noticed after that

// Raw calls: the preloaded library's own mmap would page what it maps.
std::intptr_t map(std::uintptr_t address, std::size_t length, int protection, int flags) {
  return raw::call(SYS_mmap, static_cast<long>(address), static_cast<long>(length), protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}
long advise(std::uintptr_t address, std::size_t length, int advice) {
  return raw::call(SYS_madvise, static_cast<long>(address), static_cast<long>(length), advice);
}

std::unexpected<Error> refused(const char* what, long problem) {
  return std::unexpected(Error::make(static_cast<int>(-problem), "%s", what));
}

}  // namespace

Result<std::unique_ptr<FaultedRange>> FaultedRange::create(std::uintptr_t address, std::size_t length) {
  std::unique_ptr<FaultedRange> range(new FaultedRange(address, length));
  if (Status begun = range->begin(); !begun) return std::unexpected(begun.error());
  return range;
}

Status FaultedRange::begin() {
  Result<ProbedDescriptor> probed = open_fault_descriptor();
  if (!probed) return std::unexpected(probed.error());
  const int faults = move_high(probed->descriptor);
  if (faults < 0) return refused("the program closed the descriptor of the object window", faults);
  faults_.store(faults, std::memory_order_relaxed);
  stop_ = open_high([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  fcntl(faults_.load(std::memory_order_relaxed), F_SETFL, O_NONBLOCK);
  const std::intptr_t reserved = map(address_, length_, PROT_NONE, MAP_FIXED_NOREPLACE);
  if (raw::failed(reserved)) return refused("the addresses of the object window cannot be had", reserved);
  if (reserved != static_cast<std::intptr_t>(address_)) {  // a kernel that does not know the flag
    raw::call(SYS_munmap, reserved, static_cast<long>(length_));
    return refused("the addresses of the object window are taken", -EEXIST);
  }
  if (const long problem = advise(address_, length_, MADV_DONTFORK); problem != 0)
    return refused("the object window cannot be kept from forked children", problem);
  advise(address_, length_, MADV_DONTDUMP);
  advise(address_, length_, MADV_NOHUGEPAGE);
  const std::intptr_t taken = map(0, kPageSize, PROT_READ, 0);
  if (raw::failed(taken)) return refused("no memory for the object window", taken);
  taken_ = static_cast<std::uintptr_t>(taken);
  advise(taken_, kPageSize, MADV_DONTFORK);  // as what is moved there, so that it is a child's in neither case
  return {};
}

FaultedRange::~FaultedRange() {
  if (taken_ != 0) {
    raw::call(SYS_munmap, static_cast<long>(taken_), kPageSize);
    raw::call(SYS_munmap, static_cast<long>(address_), static_cast<long>(length_));
  }
  for (int descriptor : {faults_.load(std::memory_order_relaxed), stop_}) close_high(descriptor);
}

int FaultedRange::keep_descriptor() {
  kept_ = faults_.load(std::memory_order_relaxed);
  return keeper_.hold(std::array{kept_});
}

// call(descriptor), which returns 0 or errno; again after the program has closed it, or put a file of its own there.
template <typename Call>
int FaultedRange::with_descriptor(Call&& call) {
  const int lost = faults_.load(std::memory_order_relaxed);
  const int error = call(lost);
  if ((error != EBADF && error != ENOTTY && error != EINVAL) || kept_ < 0) return error;
  const int again = keeper_.take_back(kept_, lost);
  if (again < 0) return error;
  fcntl(again, F_SETFL, O_NONBLOCK);
  faults_.store(again, std::memory_order_relaxed);
  return call(again);
}

int FaultedRange::open(std::uintptr_t address, std::size_t length) {
  const int registered = with_descriptor([&](int faults) {
    uffdio_register asked{{address, length}, UFFDIO_REGISTER_MODE_MISSING, 0};
    return ioctl(faults, UFFDIO_REGISTER, &asked) == 0 ? 0 : errno;
  });
  if (registered != 0) return registered;
  // After the registration: until then a page would read as zeros.
  return static_cast<int>(
      -raw::call(SYS_mprotect, static_cast<long>(address), static_cast<long>(length), PROT_READ | PROT_WRITE));
}

std::uintptr_t FaultedRange::wait() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    uffd_msg message{};
    ssize_t got = 0;
    with_descriptor([&](int faults) {
      got = read(faults, &message, sizeof message);
      return got < 0 ? errno : 0;
    });
    if (got == sizeof message && message.event == UFFD_EVENT_PAGEFAULT)
      return page_floor(message.arg.pagefault.address);
    pollfd either[2] = {{faults_.load(std::memory_order_relaxed), POLLIN, 0}, {stop_, POLLIN, 0}};
    poll(either, 2, kWaitMs);
  }
  return 0;
}

void FaultedRange::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  eventfd_write(stop_, 1);
}

int FaultedRange::bring(std::uintptr_t page, const void* bytes) {
  return with_descriptor([&](int faults) {
    uffdio_copy asked{page, reinterpret_cast<std::uintptr_t>(bytes), kPageSize, 0, 0};
    while (ioctl(faults, UFFDIO_COPY, &asked) != 0)
      if (errno != EAGAIN) return errno;  // EAGAIN: mappings change meanwhile
    return 0;
  });
}

int FaultedRange::poison(std::uintptr_t page) {
  return with_descriptor([&](int faults) {
    abi::uffdio_poison asked{{page, kPageSize}, 0, 0};
    while (ioctl(faults, abi::kIoctlPoison, &asked) != 0)
      if (errno != EAGAIN) return errno;
    return 0;
  });
}

void FaultedRange::wake(std::uintptr_t page) {
  with_descriptor([&](int faults) {
    uffdio_range asked{page, kPageSize};
    return ioctl(faults, UFFDIO_WAKE, &asked) == 0 ? 0 : errno;
  });
}

// mremap() is the one call before Linux 6.8 that takes a page out of a mapping as it is at one moment, and leaves the
// mapping there, registered.
const std::byte* FaultedRange::take(std::uintptr_t page) {
  const long moved = raw::call(SYS_mremap, static_cast<long>(page), kPageSize, kPageSize,
                               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, static_cast<long>(taken_));
  return raw::failed(moved) ? nullptr : reinterpret_cast<const std::byte*>(taken_);
}

Status FaultedRange::after_fork_in_child() {
  // The numbers are the child's own copies; what they stand for is the parent's.
  for (int descriptor : {faults_.exchange(-1, std::memory_order_relaxed), stop_})
    if (descriptor >= 0) close(descriptor);
  kept_ = stop_ = -1;
  keeper_.after_fork_in_child();
  taken_ = 0;  // something else may be there by now
  return begin();
}

}  // namespace hinterland
