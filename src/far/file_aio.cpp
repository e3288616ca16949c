// The asynchronous channel of file: devices, on Linux AIO.
//
// A request takes a page slot; a run of requests on adjacent pages becomes one transfer (preadv or pwritev). When a
// transfer of several pages fails or comes back short, each of its pages is tried again alone, so that a bad sector
// costs one page and not its neighbours.
//
// AIO and not io_uring, whose completions are work for the thread that submitted: that thread may be the program's,
// and wait inside the kernel for the very page (docs/adr/0027-file-on-linux-aio.md). AIO's come by themselves.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "base/file_limit.hpp"
#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "far/aio_check.hpp"
#include "far/file_store.hpp"
#include "far/kernel_aio.hpp"
#include "far/ready_list.hpp"

namespace hinterland::far {
namespace {

// 64 KiB a transfer: disks gain little beyond, and a retry page by page stays short.
constexpr std::uint32_t kMergeMax = 16;

// How soon what the kernel had no room for is offered to it again.
constexpr std::uint64_t kRetryNs = 1'000'000;

class AioChannel final : public Channel {
 public:
  AioChannel(FileStore& store, BouncePages bounce) : store_(store), bounce_(std::move(bounce)) {
    transfers_.resize(kTransfers);
    for (std::uint32_t i = 0; i < kTransfers; ++i) free_transfers_.push_back(i);
    for (std::uint32_t i = 0; i < kFileInFlightMax; ++i) free_bounce_.push_back(i);
    unsent_.reserve(kTransfers);
  }
  ~AioChannel() override;
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
    iocb control;
  };

  void add_page(Transfer& transfer, const Request& request);
  bool take_back_descriptors();
  void send_unsent();
  void reap(timespec limit);
  void prepare(std::uint32_t index);
  void transfer_now(std::uint32_t index);
  void finish(std::uint32_t index, long result);
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
  aio_context_t context_ = 0;  // 0: the machine has none left, and the channel works without
  pid_t owner_ = getpid();
  std::atomic<int> event_{-1};  // completions signal it; a new one where the program has closed it
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_, free_bounce_;
  std::vector<std::uint32_t> unsent_;  // transfers that the kernel has not taken yet
  std::uint32_t at_kernel_pages_ = 0;  // pages in transfers
  std::uint32_t at_kernel_transfers_ = 0;
  ReadyList<kFileInFlightMax> ready_;
};

Status AioChannel::open() {
  if (long failed = aio::setup(kTransfers, context_); failed != 0) {
    context_ = 0;
    log::debug("file: no context for asynchronous transfers (%s): they are waited for one by one",
               strerror(static_cast<int>(-failed)));
  }
  event_ = store_.descriptors().adopt([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (event_ < 0) return std::unexpected(Error::make(-event_, "file: cannot create an event descriptor"));
  return {};
}

// Waits for the transfers: the kernel may still write into the buffers, which are the caller's. A forked child has no
// context, and the transfers are its parent's.
AioChannel::~AioChannel() {
  if (context_ != 0 && getpid() == owner_) aio::destroy(context_);
  store_.descriptors().close(event_);
}

void AioChannel::add_page(Transfer& transfer, const Request& request) {
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

int AioChannel::submit(std::span<const Request> requests) {
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
  return static_cast<int>(count);
}

void AioChannel::prepare(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  const Request& first = transfer.pages[0].request;
  transfer.control = {};
  transfer.control.aio_data = index;
  transfer.control.aio_lio_opcode = first.operation == Operation::read ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
  transfer.control.aio_fildes = static_cast<std::uint32_t>(store_.fd());
  transfer.control.aio_buf = reinterpret_cast<std::uintptr_t>(transfer.vectors.data());
  transfer.control.aio_nbytes = transfer.count;
  transfer.control.aio_offset = static_cast<std::int64_t>(FileStore::offset_of(first.page));
  transfer.control.aio_flags = IOCB_FLAG_RESFD;
  transfer.control.aio_resfd = static_cast<std::uint32_t>(event_);
}

// Without a context: where it is submitted, and waited for.
void AioChannel::transfer_now(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  const Request& first = transfer.pages[0].request;
  auto offset = static_cast<off_t>(FileStore::offset_of(first.page));
  auto count = static_cast<int>(transfer.count);
  auto make = [&](int file) {
    return first.operation == Operation::read ? preadv(file, transfer.vectors.data(), count, offset)
                                              : pwritev(file, transfer.vectors.data(), count, offset);
  };
  const int file = store_.fd();
  ssize_t done = make(file);
  if (done < 0 && errno == EBADF && store_.take_back(file)) done = make(store_.fd());
  finish(index, done < 0 ? -errno : done);
}

// The program may have closed the file, the event or both, by a call that nobody saw. What is at the kernel has its
// own references. False: they were open, and something else is wrong.
bool AioChannel::take_back_descriptors() {
  const int file = static_cast<int>(transfers_[unsent_[0]].control.aio_fildes);
  const bool event_lost = raw::failed(raw::call(SYS_fcntl, event_, F_GETFD));
  const bool file_lost = file != store_.fd() || !store_.file_is_here();
  if (!event_lost && !file_lost) return false;
  if (file_lost && !store_.take_back(file)) return false;
  if (!event_lost) return true;
  store_.descriptors().remove(event_);
  event_ = store_.descriptors().adopt([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  return event_ >= 0;
}

void AioChannel::send_unsent() {
  while (!unsent_.empty()) {
    if (context_ == 0) {
      std::uint32_t index = unsent_.back();
      unsent_.pop_back();
      transfer_now(index);
      continue;
    }
    std::array<iocb*, 32> batch;
    std::size_t count = std::min(batch.size(), unsent_.size());
    for (std::size_t i = 0; i < count; ++i) {
      prepare(unsent_[i]);
      batch[i] = &transfers_[unsent_[i]].control;
    }
    long taken = aio::submit(context_, std::span(batch).first(count));
    // No room just now, in the context or in memory: what remains goes with the next poll().
    if (taken == 0 || taken == -EAGAIN || taken == -ENOMEM || taken == -EINTR) return;
    if (taken == -EBADF && take_back_descriptors()) continue;
    std::uint32_t refused = unsent_[0];
    unsent_.erase(unsent_.begin(), unsent_.begin() + std::max(taken, 1L));
    if (taken > 0)
      at_kernel_transfers_ += static_cast<std::uint32_t>(taken);
    else
      finish(refused, taken);
  }
}

// Waits for at most `limit` for the first completion.
void AioChannel::reap(timespec limit) {
  std::array<io_event, 32> events;
  bool may_wait = limit.tv_sec != 0 || limit.tv_nsec != 0;
  while (at_kernel_transfers_ != 0 && (may_wait || aio::completions_wait(context_))) {
    long count = aio::gather(context_, may_wait ? 1 : 0, events, limit);
    if (count <= 0) break;
    for (const io_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
      --at_kernel_transfers_;
      finish(static_cast<std::uint32_t>(event.data), static_cast<long>(event.res));
    }
    may_wait = false;
  }
  send_unsent();
}

void AioChannel::finish(std::uint32_t index, long result) {
  Transfer& transfer = transfers_[index];
  if (result == -EINTR || result == -EAGAIN) {
    unsent_.push_back(index);
    return;
  }
  if (result == -EFBIG) take_file_limit_signal();
  auto whole = static_cast<std::uint32_t>(result > 0 ? static_cast<std::size_t>(result) / kPageSize : 0);
  for (std::uint32_t i = 0; i < transfer.count; ++i) {
    const Page& page = transfer.pages[i];
    if (i < whole) {
      complete(page, store_.after_transfer(page.request.operation, page.request.page, transfer.vectors[i].iov_base));
    } else if (transfer.count == 1) {
      complete(page, result < 0 ? static_cast<int>(-result) : EIO);
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

void AioChannel::complete(const Page& page, int error) {
  if (page.bounce != kNoBounce) {
    if (error == 0 && page.request.operation == Operation::read)
      std::memcpy(page.request.buffer, bounce_.page(page.bounce), kPageSize);
    free_bounce_.push_back(page.bounce);
  }
  --at_kernel_pages_;
  ready_.put({page.request.tag, error});
}

int AioChannel::poll(std::span<Completion> completions) {
  if (at_kernel_transfers_ != 0 || !unsent_.empty()) reap({});
  return ready_.take(completions);
}

void AioChannel::wait(std::uint64_t timeout_ns) {
  if (ready_.size() != 0) return;
  if (!unsent_.empty()) timeout_ns = std::min(timeout_ns, kRetryNs);
  timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000u), static_cast<long>(timeout_ns % 1'000'000'000u)};
  if (at_kernel_transfers_ == 0)
    nanosleep(&limit, nullptr);
  else
    reap(limit);
}

// The signal is taken before the look: a completion that comes between is seen by the sleeper. What the kernel had no
// room for must be offered again by somebody.
int AioChannel::event_descriptor() const {
  eventfd_t ignored;
  eventfd_read(event_, &ignored);
  bool none_comes = !unsent_.empty() && at_kernel_transfers_ == 0;
  bool some_came = at_kernel_transfers_ != 0 && aio::completions_wait(context_);
  if (ready_.size() != 0 || none_comes || some_came) eventfd_write(event_, 1);
  return event_;
}

}  // namespace

Result<std::unique_ptr<Channel>> open_aio_channel(FileStore& store) {
  auto bounce = BouncePages::create();
  if (!bounce) return std::unexpected(bounce.error());
  auto channel = std::make_unique<AioChannel>(store, std::move(*bounce));
  if (auto ok = channel->open(); !ok) return std::unexpected(ok.error());
  return channel;
}

int aio_error() {
  aio_context_t context = 0;
  if (long failed = aio::setup(1, context); failed != 0) return static_cast<int>(-failed);
  aio::destroy(context);
  return 0;
}

}  // namespace hinterland::far
