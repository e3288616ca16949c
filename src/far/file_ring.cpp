// The io_uring channel of file: devices.
//
// A request takes a page slot; a run of requests on adjacent pages becomes one transfer (readv or writev). When a
// transfer of several pages fails or comes back short, each of its pages is tried again alone, so that a bad sector
// costs one page and not its neighbours.
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "far/file_store.hpp"
#include "far/io_uring_check.hpp"
#include "far/ready_list.hpp"

namespace hinterland::far {
namespace {

// 64 KiB a transfer: disks gain little beyond, and a retry page by page stays short.
constexpr std::uint32_t kMergeMax = 16;

class RingChannel final : public Channel {
 public:
  RingChannel(FileStore& store, BouncePages bounce) : store_(store), bounce_(std::move(bounce)) {
    transfers_.resize(kTransfers);
    for (std::uint32_t i = 0; i < kTransfers; ++i) free_transfers_.push_back(i);
    for (std::uint32_t i = 0; i < kFileInFlightMax; ++i) free_bounce_.push_back(i);
    unsent_.reserve(kTransfers);
  }
  ~RingChannel() override;
  Status open();

  int submit(std::span<const Request> requests) override;
  int poll(std::span<Completion> completions) override;
  void wait(std::uint64_t timeout_ns) override;
  int event_descriptor() const override;
  std::uint32_t in_flight() const override { return at_kernel_pages_ + ready_.size(); }

 private:
  static constexpr std::uint32_t kNoBounce = UINT32_MAX;
  // One a page, and the one whose pages are being given one each, because it failed as a whole.
  static constexpr std::uint32_t kTransfers = kFileInFlightMax + 1;
  struct Page {
    Request request;
    std::uint32_t bounce;
  };
  struct Transfer {
    std::uint32_t count = 0;
    std::array<Page, kMergeMax> pages;
    std::array<iovec, kMergeMax> vectors;
  };

  void add_page(Transfer& transfer, const Request& request);
  void send_unsent();
  void reap();
  void finish(std::uint32_t index, int result);
  void complete(const Page& page, int error);
  std::uint32_t take_transfer() {
    HL_CHECK(!free_transfers_.empty());
    std::uint32_t index = free_transfers_.back();
    free_transfers_.pop_back();
    transfers_[index].count = 0;
    return index;
  }

  FileStore& store_;
  BouncePages bounce_;
  io_uring ring_{};
  bool ring_open_ = false;
  pid_t owner_ = getpid();
  int event_ = -1;
  mutable bool event_registered_ = false;  // completions signal it; not before somebody asks, it costs each one
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_, free_bounce_;
  std::vector<std::uint32_t> unsent_;  // transfers that wait for room in the submission queue
  std::uint32_t at_kernel_pages_ = 0;  // pages in transfers
  std::uint32_t at_kernel_transfers_ = 0;
  ReadyList<kFileInFlightMax> ready_;
};

int create_ring(io_uring& ring) { return io_uring_queue_init(kFileInFlightMax, &ring, IORING_SETUP_CLAMP); }

Status RingChannel::open() {
  int failed = create_ring(ring_);
  if (failed < 0) {
    Error error = Error::make(-failed, "file: cannot set up io_uring");
    error.remedy("check kernel.io_uring_disabled and the limits on memory and descriptors");
    return std::unexpected(error);
  }
  ring_open_ = true;
  ring_.ring_fd = ring_.enter_ring_fd = store_.descriptors().adopt(ring_.ring_fd);
  // A forked child makes rings of its own; writing into the parent's would confuse it.
  io_uring_ring_dontfork(&ring_);
  event_ = store_.descriptors().adopt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event_ < 0) return std::unexpected(Error::make(errno, "file: cannot create an event descriptor"));
  return {};
}

RingChannel::~RingChannel() {
  // In a forked child the ring is not mapped, and its transfers are the parent's.
  bool ours = getpid() == owner_;
  // The kernel may still write into the buffers: they must outlive their transfers.
  while (ours && ring_open_ && at_kernel_transfers_ != 0) {
    wait(1'000'000'000);
    reap();
    std::array<Completion, 32> dropped;
    while (ready_.take(dropped) > 0) {
    }
  }
  // Closed by the set, and so only once; io_uring_queue_exit() must not close it again: it gets a copy.
  int ring = ring_open_ ? ring_.ring_fd : -1;
  if (ours && ring_open_) {
    ring_.ring_fd = ring_.enter_ring_fd = fcntl(ring, F_DUPFD_CLOEXEC, 3);
    io_uring_queue_exit(&ring_);
  }
  store_.descriptors().close(ring);
  store_.descriptors().close(event_);
}

void RingChannel::add_page(Transfer& transfer, const Request& request) {
  Page& page = transfer.pages[transfer.count];
  page = {request, kNoBounce};
  void* bytes = request.buffer;
  if (store_.direct() && reinterpret_cast<std::uintptr_t>(bytes) % kPageSize != 0) {
    page.bounce = free_bounce_.back();
    free_bounce_.pop_back();
    bytes = bounce_.page(page.bounce);
    if (request.operation == Operation::write) std::memcpy(bytes, request.buffer, kPageSize);
  }
  if (request.operation == Operation::write) store_.before_write(request.page, bytes);
  transfer.vectors[transfer.count++] = {bytes, kPageSize};
  ++at_kernel_pages_;
}

int RingChannel::submit(std::span<const Request> requests) {
  std::uint32_t room = kFileInFlightMax - in_flight();
  std::size_t count = std::min<std::size_t>(requests.size(), room);
  for (std::size_t at = 0; at < count;) {
    if (int error = store_.check(requests[at]); error != 0) {
      ready_.put({requests[at++].tag, error});
      continue;
    }
    std::uint32_t index = take_transfer();
    Transfer& transfer = transfers_[index];
    const Request& first = requests[at];
    do add_page(transfer, requests[at++]);
    while (at < count && transfer.count < kMergeMax && requests[at].operation == first.operation &&
           requests[at].page.value == first.page.value + transfer.count && store_.check(requests[at]) == 0);
    unsent_.push_back(index);
  }
  send_unsent();
  // Failures found here produce no event of the ring.
  if (event_registered_ && ready_.size() != 0) eventfd_write(event_, 1);
  return static_cast<int>(count);
}

void RingChannel::send_unsent() {
  std::size_t sent = 0;
  for (std::uint32_t index : unsent_) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) break;
    const Transfer& transfer = transfers_[index];
    const Request& first = transfer.pages[0].request;
    if (first.operation == Operation::read && transfer.count == 1)
      io_uring_prep_read(entry, store_.fd(), transfer.vectors[0].iov_base, kPageSize,
                         FileStore::offset_of(first.page));
    else if (first.operation == Operation::read)
      io_uring_prep_readv(entry, store_.fd(), transfer.vectors.data(), transfer.count,
                          FileStore::offset_of(first.page));
    else
      io_uring_prep_writev(entry, store_.fd(), transfer.vectors.data(), transfer.count,
                           FileStore::offset_of(first.page));
    io_uring_sqe_set_data64(entry, index);
    ++sent;
    ++at_kernel_transfers_;
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
  // A failure (EAGAIN, EBUSY) leaves the entries in the queue: the next poll() submits them again.
  if (io_uring_sq_ready(&ring_) != 0) io_uring_submit(&ring_);
}

void RingChannel::reap() {
  std::array<io_uring_cqe*, 32> entries;
  for (unsigned count; (count = io_uring_peek_batch_cqe(&ring_, entries.data(), entries.size())) != 0;) {
    for (io_uring_cqe* entry : std::span(entries).first(count)) {
      --at_kernel_transfers_;
      finish(static_cast<std::uint32_t>(io_uring_cqe_get_data64(entry)), entry->res);
    }
    io_uring_cq_advance(&ring_, count);
  }
  if (!unsent_.empty() || io_uring_sq_ready(&ring_) != 0) send_unsent();
}

void RingChannel::finish(std::uint32_t index, int result) {
  Transfer& transfer = transfers_[index];
  bool again = result == -EINTR || result == -EAGAIN;
  if (again) {
    unsent_.push_back(index);
    return;
  }
  auto whole = static_cast<std::uint32_t>(result > 0 ? static_cast<std::size_t>(result) / kPageSize : 0);
  for (std::uint32_t i = 0; i < transfer.count; ++i) {
    const Page& page = transfer.pages[i];
    if (i < whole) {
      complete(page, store_.after_transfer(page.request.operation, page.request.page, transfer.vectors[i].iov_base));
    } else if (transfer.count == 1) {
      complete(page, result < 0 ? -result : EIO);
    } else {
      std::uint32_t alone = take_transfer();
      transfers_[alone].count = 1;
      transfers_[alone].pages[0] = page;
      transfers_[alone].vectors[0] = transfer.vectors[i];
      unsent_.push_back(alone);
    }
  }
  free_transfers_.push_back(index);
}

void RingChannel::complete(const Page& page, int error) {
  if (page.bounce != kNoBounce) {
    if (error == 0 && page.request.operation == Operation::read)
      std::memcpy(page.request.buffer, bounce_.page(page.bounce), kPageSize);
    free_bounce_.push_back(page.bounce);
  }
  --at_kernel_pages_;
  ready_.put({page.request.tag, error});
}

int RingChannel::poll(std::span<Completion> completions) {
  if (at_kernel_transfers_ != 0 || !unsent_.empty()) reap();
  return ready_.take(completions);
}

void RingChannel::wait(std::uint64_t timeout_ns) {
  if (ready_.size() != 0) return;
  if (at_kernel_transfers_ == 0) {
    timespec pause{static_cast<time_t>(timeout_ns / 1'000'000'000u), static_cast<long>(timeout_ns % 1'000'000'000u)};
    nanosleep(&pause, nullptr);
    return;
  }
  __kernel_timespec limit{static_cast<long long>(timeout_ns / 1'000'000'000u),
                          static_cast<long long>(timeout_ns % 1'000'000'000u)};
  io_uring_cqe* entry = nullptr;
  io_uring_wait_cqe_timeout(&ring_, &entry, &limit);
}

// Whoever is about to sleep asks for it, so it is put right here, and looking for completions costs no system call.
// The signal is taken before the look: a completion that comes between is seen by the sleeper.
int RingChannel::event_descriptor() const {
  if (!event_registered_) event_registered_ = io_uring_register_eventfd(const_cast<io_uring*>(&ring_), event_) == 0;
  eventfd_t ignored;
  eventfd_read(event_, &ignored);
  if (ready_.size() != 0 || io_uring_cq_ready(&ring_) != 0) eventfd_write(event_, 1);
  return event_;
}

}  // namespace

Result<std::unique_ptr<Channel>> open_ring_channel(FileStore& store) {
  auto bounce = BouncePages::create();
  if (!bounce) return std::unexpected(bounce.error());
  auto channel = std::make_unique<RingChannel>(store, std::move(*bounce));
  if (auto ok = channel->open(); !ok) return std::unexpected(ok.error());
  return channel;
}

int io_uring_error() {
  io_uring ring;
  if (int failed = create_ring(ring); failed != 0) return -failed;
  io_uring_queue_exit(&ring);
  return 0;
}

}  // namespace hinterland::far
