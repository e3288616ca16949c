#include "floor/calls.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "kernel/userfaultfd_abi.hpp"

namespace hinterland::bench {
namespace {

// UFFDIO_COPY and its kin stop half-way with EAGAIN; `done` bytes are then behind us.
template <typename Call>
void in_parts(const char* what, std::size_t bytes, Call call) {
  std::size_t done = 0;
  while (done < bytes) {
    std::int64_t part = 0;
    int status = call(done, part);
    if (status != 0 && errno != EAGAIN) fail(what, errno);
    if (part > 0) done += static_cast<std::size_t>(part);
  }
}

std::uint64_t address_of(const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

int open_descriptor() {
  auto descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (descriptor < 0 && errno == EPERM) {
    descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  }
  if (descriptor < 0) fail("userfaultfd (hinterland doctor says what would allow it)", errno);
  return descriptor;
}

int self_descriptor() {
  static const int descriptor = [] {
    iovec nothing{nullptr, 0};
    if (syscall(SYS_process_madvise, abi::kPidfdSelfThreadGroup, &nothing, 1, MADV_DONTNEED, 0) >= 0)
      return abi::kPidfdSelfThreadGroup;
    auto opened = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (opened >= 0 && syscall(SYS_process_madvise, opened, &nothing, 1, MADV_DONTNEED, 0) >= 0) return opened;
    return -1;
  }();
  return descriptor;
}

}  // namespace

void fail(const std::string& what, int error) { throw Failed(what + ": " + std::strerror(error)); }

Mapping::Mapping(std::size_t bytes) : bytes_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail("mmap of " + std::to_string(bytes / kMiB) + " MiB", errno);
  data_ = static_cast<std::byte*>(mapped);
  madvise(mapped, bytes, MADV_NOHUGEPAGE);  // fails only where there are no huge pages
}

Mapping::~Mapping() { munmap(data_, bytes_); }

Faults::Faults(Delivery delivery) : descriptor_(open_descriptor()) {
  std::uint64_t wanted = delivery == Delivery::signal ? UFFD_FEATURE_SIGBUS : 0;
  uffdio_api api{};  // the handshake names each wanted feature, and answers with all there are
  api.api = UFFD_API;
  api.features = wanted | abi::kFeatureMove;
  if (ioctl(descriptor_, UFFDIO_API, &api) != 0) {
    close(descriptor_);  // a refused handshake cannot be repeated on the same descriptor
    descriptor_ = open_descriptor();
    api = {};
    api.api = UFFD_API;
    api.features = wanted;
    if (ioctl(descriptor_, UFFDIO_API, &api) != 0) fail("userfaultfd handshake", errno);
  }
  features_ = api.features;
}

Faults::~Faults() { close(descriptor_); }

bool Faults::can_move() const { return (features_ & abi::kFeatureMove) != 0; }

void Faults::add(const Mapping& mapping, bool write_protect) {
  uffdio_register request{};
  request.range = {address_of(mapping.data()), mapping.bytes()};
  request.mode = UFFDIO_REGISTER_MODE_MISSING | (write_protect ? UFFDIO_REGISTER_MODE_WP : 0);
  if (ioctl(descriptor_, UFFDIO_REGISTER, &request) != 0) fail("UFFDIO_REGISTER", errno);
}

void Faults::copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  in_parts("UFFDIO_COPY", bytes, [&](std::size_t done, std::int64_t& part) {
    uffdio_copy request{address_of(target) + done, address_of(source) + done, bytes - done, 0, 0};
    int status = ioctl(descriptor_, UFFDIO_COPY, &request);
    part = request.copy;
    return status;
  });
}

void Faults::move(std::byte* target, std::byte* source, std::size_t bytes) {
  in_parts("UFFDIO_MOVE", bytes, [&](std::size_t done, std::int64_t& part) {
    abi::uffdio_move request{address_of(target) + done, address_of(source) + done, bytes - done, 0, 0};
    int status = ioctl(descriptor_, abi::kIoctlMove, &request);
    part = request.move;
    return status;
  });
}

void Faults::zero(std::byte* target, std::size_t bytes) {
  in_parts("UFFDIO_ZEROPAGE", bytes, [&](std::size_t done, std::int64_t& part) {
    uffdio_zeropage request{{address_of(target) + done, bytes - done}, 0, 0};
    int status = ioctl(descriptor_, UFFDIO_ZEROPAGE, &request);
    part = request.zeropage;
    return status;
  });
}

void Faults::protect(std::byte* address, std::size_t bytes, bool on) {
  uffdio_writeprotect request{{address_of(address), bytes}, on ? UFFDIO_WRITEPROTECT_MODE_WP : __u64{0}};
  if (ioctl(descriptor_, UFFDIO_WRITEPROTECT, &request) != 0) fail("UFFDIO_WRITEPROTECT", errno);
}

void Faults::wake(std::byte* address, std::size_t bytes) {
  uffdio_range range{address_of(address), bytes};
  if (ioctl(descriptor_, UFFDIO_WAKE, &range) != 0) fail("UFFDIO_WAKE", errno);
}

void Faults::set_blocking(bool blocking) {
  int flags = fcntl(descriptor_, F_GETFL);
  if (fcntl(descriptor_, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) != 0) fail("fcntl", errno);
}

void Faults::read_messages(std::vector<std::byte*>& pages) {
  std::array<uffd_msg, 16> messages;
  ssize_t got = read(descriptor_, messages.data(), sizeof messages);
  if (got < 0 && errno != EAGAIN && errno != EINTR) fail("reading fault messages", errno);
  for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++i) {
    if (messages[i].event != UFFD_EVENT_PAGEFAULT) continue;
    pages.push_back(reinterpret_cast<std::byte*>(page_floor(messages[i].arg.pagefault.address)));
  }
}

void discard(std::byte* address, std::size_t bytes) {
  if (madvise(address, bytes, MADV_DONTNEED) != 0) fail("madvise(DONTNEED)", errno);
}

bool can_discard_vectors() { return self_descriptor() != -1; }

void discard(std::span<const iovec> ranges) {
  if (!can_discard_vectors()) {
    for (const iovec& range : ranges) discard(static_cast<std::byte*>(range.iov_base), range.iov_len);
    return;
  }
  constexpr std::size_t kRangesMax = 1024;  // UIO_MAXIOV
  while (!ranges.empty()) {
    std::span<const iovec> part = ranges.first(std::min(ranges.size(), kRangesMax));
    if (syscall(SYS_process_madvise, self_descriptor(), part.data(), part.size(), MADV_DONTNEED, 0) < 0)
      fail("process_madvise(DONTNEED)", errno);
    ranges = ranges.subspan(part.size());
  }
}

const std::vector<int>& processors() {
  static const std::vector<int> found = [] {
    cpu_set_t set;
    std::vector<int> result;
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail("sched_getaffinity", errno);
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) result.push_back(i);
    return result;
  }();
  return found;
}

namespace {
void set_affinity(std::span<const int> list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int processor : list) CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity", errno);
}
}  // namespace

void pin_to(int processor) { set_affinity({&processor, 1}); }
void unpin() { set_affinity(processors()); }

}  // namespace hinterland::bench
