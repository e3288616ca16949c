#include "far/sim_device.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

#include "base/clock.hpp"
#include "far/descriptor_set.hpp"
#include "far/shared_memory.hpp"

namespace hinterland::far {
namespace {

constexpr std::uint32_t kInFlightMax = 256;
// Sleeping wakes up this late at worst on a quiet machine: the rest of a wait is spun.
constexpr std::uint64_t kSpinNs = 60'000;

// splitmix64 (Steele, Lea, Flood 2014): request number in, even distribution out.
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

class SimDevice final : public Device {
 public:
  SimDevice(const SimSettings& settings, std::unique_ptr<Device> inner, SharedMemory shared)
      : settings_(settings), inner_(std::move(inner)), shared_(std::move(shared)) {
    info_ = inner_->info();
    info_.url = "sim:latency=" + std::to_string(settings.latency_ns) +
                "ns,bandwidth=" + std::to_string(settings.bandwidth_bits_per_s) + "bps,inner=" + info_.url;
    if (info_.synchronous) info_.in_flight_max = kInFlightMax;
    info_.in_flight_max = std::min(info_.in_flight_max, kInFlightMax);
    info_.best_batch_pages = std::min(std::max(info_.best_batch_pages, 32u), info_.in_flight_max);
    info_.synchronous = info_.direct = false;
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceUsage usage() const override { return inner_->usage(); }
  Result<std::uint32_t> allocate_slab() override {
    if (int error = lost(); error != 0) return std::unexpected(Error::make(error, "%s: lost", info_.url.c_str()));
    return inner_->allocate_slab();
  }
  void release_slab(std::uint32_t slab) override { inner_->release_slab(slab); }
  bool settle() override { return inner_->settle(); }
  void discard(std::span<const FarPage> pages) override { inner_->discard(pages); }
  Result<std::unique_ptr<Channel>> open_channel() override;
  Status after_fork_in_child() override {
    descriptors_.close_all_after_fork();  // of the parent's channels
    return inner_->after_fork_in_child();
  }
  std::size_t descriptors(int* out, std::size_t max) const override {
    std::size_t used = descriptors_.list(out, max);
    return used + inner_->descriptors(out + used, max - used);
  }
  void leave() override { inner_->leave(); }
  void stay() override { inner_->stay(); }
  int lost() const override {
    if (int error = inner_->lost(); error != 0) return error;
    return settings_.lose_after != 0 && link().requests.load(std::memory_order_relaxed) >= settings_.lose_after
               ? ECONNRESET
               : 0;
  }

  // What happens to the next request: 0, or the errno it fails with.
  int next_fate(Operation operation) {
    std::uint64_t number = link().requests.fetch_add(1, std::memory_order_relaxed);
    // 53 bits make a double in [0, 1)
    auto chance = [&](std::uint64_t stream) {
      return static_cast<double>(scramble(scramble(settings_.seed * 4 + stream) + number) >> 11) * 0x1p-53;
    };
    if (operation == Operation::write) return chance(0) < settings_.fail_writes ? EIO : 0;
    if (chance(1) < settings_.fail_reads) return EIO;
    return chance(2) < settings_.corrupt ? EBADMSG : 0;
  }

  // Sends so many bytes over the link; when they arrive.
  std::uint64_t arrival_ns(Operation operation, std::uint32_t bytes, std::uint64_t now) {
    if (settings_.bandwidth_bits_per_s == 0) return now + settings_.latency_ns;
    __extension__ using Wide = unsigned __int128;
    auto transfer = static_cast<std::uint64_t>(Wide{bytes} * 8 * 1'000'000'000u / settings_.bandwidth_bits_per_s);
    auto& free_at = link().free_at_ns[static_cast<std::size_t>(operation)];
    std::uint64_t seen = free_at.load(std::memory_order_relaxed), end;
    do end = std::max(seen, now) + transfer;
    while (!free_at.compare_exchange_weak(seen, end, std::memory_order_relaxed));
    return end + settings_.latency_ns;
  }

  Device& inner() { return *inner_; }
  DescriptorSet& channel_descriptors() { return descriptors_; }

 private:
  struct Link {
    std::array<std::atomic<std::uint64_t>, 2> free_at_ns;  // by operation; relaxed: a clock, ordered with nothing
    std::atomic<std::uint64_t> requests;
  };
  Link& link() const { return *shared_.at<Link>(0); }

  SimSettings settings_;
  std::unique_ptr<Device> inner_;
  SharedMemory shared_;
  DeviceInfo info_;
  DescriptorSet descriptors_;
};

class SimChannel final : public Channel {
 public:
  SimChannel(SimDevice& device, std::unique_ptr<Channel> inner)
      : device_(device), inner_(std::move(inner)), synchronous_(device.inner().info().synchronous) {
    slots_.resize(device.info().in_flight_max);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
    busy_.reserve(slots_.size());
  }
  ~SimChannel() override {
    device_.channel_descriptors().close(timer_);
    device_.channel_descriptors().close(epoll_);
  }

  Status open_descriptors() {
    timer_ = device_.channel_descriptors().adopt(
        [] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); });
    if (timer_ < 0) return std::unexpected(Error::make(-timer_, "sim: cannot create a timer"));
    if (synchronous_) return {};
    epoll_ = device_.channel_descriptors().adopt([] { return epoll_create1(EPOLL_CLOEXEC); });
    if (epoll_ < 0) return std::unexpected(Error::make(-epoll_, "sim: cannot create an event descriptor"));
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
    return {};
  }

  int submit(std::span<const Request> requests) override {
    int count = 0;
    for (const Request& request : requests) {
      if (int error = device_.lost(); error != 0) return count != 0 ? count : -error;
      if (free_.empty()) break;
      std::uint32_t index = free_.back();
      Slot& slot = slots_[index];
      slot = {.tag = request.tag,
              .due_ns = 0,
              .buffer = request.buffer,
              .bytes = request.bytes,
              .error = 0,
              .fate = 0,
              .pending = false};
      slot.fate = device_.next_fate(request.operation);
      if (slot.fate == 0 || slot.fate == EBADMSG) {
        Request forwarded = request;
        forwarded.tag = index;
        int took = inner_->submit({&forwarded, 1});
        if (took < 0 && count == 0) return took;
        if (took <= 0) break;
        slot.pending = true;
      }
      slot.due_ns = device_.arrival_ns(request.operation, request.bytes, now_ns());
      free_.pop_back();
      busy_.push_back(index);
      ++count;
      if (synchronous_) gather();
    }
    if (count != 0) arm_if_sooner();
    return count;
  }

  int poll(std::span<Completion> completions) override {
    if (!synchronous_) gather();
    if (busy_.empty()) return 0;
    std::uint64_t now = now_ns();
    std::size_t count = 0;
    for (std::size_t at = 0; at < busy_.size() && count < completions.size();) {
      Slot& slot = slots_[busy_[at]];
      int lost = device_.lost();
      if (slot.pending || (slot.due_ns > now && lost == 0)) {
        ++at;
        continue;
      }
      // Damage is what a checksum would have found, so the bytes are really wrong, too. Parts of pages have none.
      const bool noticed = slot.fate != EBADMSG || slot.bytes == kPageSize;
      const int own = slot.fate != 0 && noticed ? slot.fate : slot.error;
      completions[count++] = {slot.tag, lost != 0 ? lost : own};
      if (slot.fate == EBADMSG) static_cast<unsigned char*>(slot.buffer)[slot.due_ns % slot.bytes] ^= 0x10;
      free_.push_back(busy_[at]);
      busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    arm_if_sooner();
    return static_cast<int>(count);
  }

  void wait(std::uint64_t timeout_ns) override {
    std::uint64_t now = now_ns(), end = now + timeout_ns, next = std::min(next_due_ns(), end);
    if (next_due_ns() <= now) {
      if (!synchronous_ && std::ranges::any_of(busy_, [&](auto index) { return slots_[index].pending; }))
        inner_->wait(timeout_ns);
      return;
    }
    if (next > now + kSpinNs) {
      timespec until{static_cast<time_t>((next - kSpinNs) / 1'000'000'000u),
                     static_cast<long>((next - kSpinNs) % 1'000'000'000u)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    while (now_ns() < next) __builtin_ia32_pause();
  }

  int event_descriptor() const override {
    descriptor_used_ = true;
    arm();
    if (synchronous_) return timer_;
    int inner = inner_->event_descriptor();
    if (inner >= 0 && inner != watched_) {
      epoll_event event{.events = EPOLLIN, .data = {}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, inner, &event) == 0 || errno == EEXIST) watched_ = inner;
    }
    return epoll_;
  }
  std::uint32_t in_flight() const override { return static_cast<std::uint32_t>(busy_.size()); }

 private:
  struct Slot {
    std::uint64_t tag;
    std::uint64_t due_ns;
    void* buffer;
    std::uint32_t bytes;
    int error;     // of the inner device
    int fate;      // errno decided here
    bool pending;  // the inner device has it
  };

  void gather() {
    std::array<Completion, 32> done;
    for (int count; (count = inner_->poll(done)) > 0;)
      for (const Completion& completion : std::span(done).first(static_cast<std::size_t>(count))) {
        Slot& slot = slots_[completion.tag];
        slot.error = completion.error;
        slot.pending = false;
      }
  }

  // UINT64_MAX when nothing is in flight.
  std::uint64_t next_due_ns() const {
    std::uint64_t next = UINT64_MAX;
    for (std::uint32_t index : busy_) next = std::min(next, slots_[index].due_ns);
    return next;
  }

  // The next arrival that only waits for its time; UINT64_MAX when there is none. One whose time has come and that
  // waits for the inner device is announced by the inner device's descriptor.
  std::uint64_t next_timed_ns() const {
    std::uint64_t next = UINT64_MAX;
    bool lost = device_.lost() != 0;
    for (std::uint32_t index : busy_)
      if (const Slot& slot = slots_[index]; !slot.pending) next = std::min(next, lost ? 1 : slot.due_ns);
    return next;
  }
  // Another thread may sleep on the descriptor. A timer that fires too soon, or has fired, wakes it in vain at worst,
  // and it asks again; to set it at each arrival may cost an interrupt of another CPU each time.
  void arm_if_sooner() const {
    if (descriptor_used_ && next_timed_ns() < armed_ns_) arm();
  }
  void arm() const {
    std::uint64_t next = armed_ns_ = next_timed_ns();
    itimerspec when{};
    if (next != UINT64_MAX) {
      when.it_value.tv_sec = static_cast<time_t>(next / 1'000'000'000u);
      when.it_value.tv_nsec = static_cast<long>(next % 1'000'000'000u);
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  }

  SimDevice& device_;
  std::unique_ptr<Channel> inner_;
  bool synchronous_;  // the inner device
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_, busy_;  // indexes of slots; busy_ in the order of submission
  int timer_ = -1, epoll_ = -1;
  mutable int watched_ = -1;                     // the inner descriptor that epoll_ watches
  mutable bool descriptor_used_ = false;         // somebody sleeps on the descriptor now and then
  mutable std::uint64_t armed_ns_ = UINT64_MAX;  // the timer fires then, or has fired
};

Result<std::unique_ptr<Channel>> SimDevice::open_channel() {
  auto inner = inner_->open_channel();
  if (!inner) return std::unexpected(inner.error());
  auto channel = std::make_unique<SimChannel>(*this, std::move(*inner));
  if (auto ok = channel->open_descriptors(); !ok) return std::unexpected(ok.error());
  return channel;
}

}  // namespace

Result<std::unique_ptr<Device>> open_sim_device(const SimSettings& settings, const DeviceSettings& inner_settings) {
  auto inner = open_device(settings.inner, inner_settings);
  if (!inner) return inner;
  auto shared = SharedMemory::reserve(kPageSize, "sim:");
  if (!shared) return std::unexpected(shared.error());
  return std::make_unique<SimDevice>(settings, std::move(*inner), std::move(*shared));
}

}  // namespace hinterland::far
