#include "far/devices.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hinterland::far {
namespace {

constexpr std::size_t kStretch = 64;  // pages that are told to a device together

// Calls visit(device, pages as the device knows them) for stretches of pages on the same device. Those of device 0
// have the same number there.
template <typename Visit>
void for_each_stretch(std::span<const FarPage> pages, Visit&& visit) {
  for (std::size_t at = 0; at < pages.size();) {
    std::uint32_t device = pages[at].device();
    std::size_t length = 1;
    while (at + length < pages.size() && pages[at + length].device() == device) ++length;
    std::span<const FarPage> stretch = pages.subspan(at, length);
    at += length;
    if (device == 0) {
      visit(device, stretch);
      continue;
    }
    std::array<FarPage, kStretch> own;
    for (std::size_t done = 0; done < length;) {
      std::size_t part = std::min(length - done, own.size());
      for (std::size_t i = 0; i < part; ++i) own[i] = stretch[done + i].on_device();
      visit(device, std::span<const FarPage>(own).first(part));
      done += part;
    }
  }
}

}  // namespace

Devices::Devices(std::unique_ptr<Device> first, std::string url) {
  set(0, std::move(first), std::move(url));
  all_synchronous_.store(entries_[0].synchronous, std::memory_order_relaxed);
  count_.store(1, std::memory_order_release);
}

void Devices::set(std::uint32_t index, std::unique_ptr<Device> device, std::string url) {
  Entry& entry = entries_[index];
  entry.synchronous = device->info().synchronous;
  entry.direct = device->info().direct;
  entry.device = std::move(device);
  entry.url = std::move(url);
}

Status Devices::create_space(std::uint64_t bytes_max) {
  space_bytes_ = bytes_max;
  auto space = Space::create(*entries_[0].device, bytes_max);
  if (!space) return std::unexpected(space.error());
  entries_[0].space = std::move(*space);
  return {};
}

bool Devices::have_operators() const {
  return std::ranges::any_of(entries(), [](const Entry& each) { return each.device->has_operators(); });
}

bool Devices::compose_pages() const {
  return std::ranges::any_of(entries(), [](const Entry& each) { return each.device->composes(); });
}

bool Devices::patch_pages() const {
  return std::ranges::any_of(entries(), [](const Entry& each) { return each.device->patches(); });
}

bool Devices::some_lost() const {
  return std::ranges::any_of(entries(), [](const Entry& each) { return each.device->lost() != 0; });
}

bool Devices::all_lost() const {
  return std::ranges::all_of(entries(), [](const Entry& each) { return each.device->lost() != 0; });
}

std::uint64_t Devices::capacity_bytes() const {
  std::uint64_t sum = 0;
  for (const Entry& each : entries()) {
    if (each.device->info().capacity_bytes == 0) return 0;
    sum += each.device->info().capacity_bytes;
  }
  return sum;
}

std::uint64_t Devices::beyond_memory_bytes() const {
  std::uint64_t sum = 0;
  for (const Entry& each : entries()) sum += each.device->info().beyond_memory_bytes;
  return sum;
}

DeviceUsage Devices::usage() const {
  DeviceUsage sum;
  for (const Entry& each : entries()) {
    DeviceUsage usage = each.device->usage();
    sum.used_bytes += usage.used_bytes;
    sum.stored_bytes += usage.stored_bytes;
    sum.here_bytes += usage.here_bytes;
  }
  return sum;
}

void Devices::leave() {
  for (const Entry& each : entries()) each.device->leave();
}

void Devices::stay() {
  for (const Entry& each : entries()) each.device->stay();
}

std::size_t Devices::allocate(std::uint32_t device, std::span<FarPage> out, int* error) {
  std::size_t taken = entries_[device].space->allocate(out, error);
  if (device != 0)
    for (FarPage& page : out.first(taken)) page = page.of_device(device);
  return taken;
}

void Devices::retain(std::span<const FarPage> pages) {
  for_each_stretch(
      pages, [this](std::uint32_t device, std::span<const FarPage> own) { entries_[device].space->retain(own); });
}

void Devices::release(std::span<const FarPage> pages) {
  for_each_stretch(
      pages, [this](std::uint32_t device, std::span<const FarPage> own) { entries_[device].space->release(own); });
}

void Devices::borrow(std::span<const FarPage> pages) {
  for_each_stretch(
      pages, [this](std::uint32_t device, std::span<const FarPage> own) { entries_[device].space->borrow(own); });
}

void Devices::give_back(std::span<const FarPage> pages) {
  for_each_stretch(
      pages, [this](std::uint32_t device, std::span<const FarPage> own) { entries_[device].space->give_back(own); });
}

std::uint64_t Devices::pages_in_use() const {
  std::uint64_t sum = 0;
  for (const Entry& each : entries()) sum += each.space->pages_in_use();
  return sum;
}

bool Devices::is_shared() const {
  return std::ranges::any_of(entries(), [](const Entry& each) { return each.space->is_shared(); });
}

void Devices::begin_child() {
  for (const Entry& each : entries()) each.space->begin_child();
}

void Devices::cancel_child() {
  for (const Entry& each : entries()) each.space->cancel_child();
}

Status Devices::after_fork_in_child() {
  mutex_.reset_after_fork();
  open_.clear();  // the parent's
  entered_ = 0;
  for (const Entry& each : entries()) {
    if (Status status = each.device->after_fork_in_child(); !status) return status;
    each.space->after_fork_in_child();
  }
  return {};
}

void Devices::enter_process() {
  for (; entered_ < count(); ++entered_) entries_[entered_].space->enter_process();
}

void Devices::wait_until_entered() {
  for (const Entry& each : entries()) each.space->wait_until_entered();
}

bool Devices::settle() {
  bool again = false;
  for (const Entry& each : entries()) again |= each.device->settle();
  return again;
}

bool Devices::reap() {
  bool more = false;
  for (const Entry& each : entries()) more |= each.space->reap();
  return more;
}

std::optional<std::uint32_t> Devices::find(const std::string& url) const {
  for (std::uint32_t device = 0; device < count(); ++device)
    if (entries_[device].url == url || info(device).url == url) return device;
  return std::nullopt;
}

Result<std::uint32_t> Devices::add(std::unique_ptr<Device> device, std::string url) {
  std::uint32_t index = count();
  if (index == kDevicesMax)
    return std::unexpected(
        Error::make(ENOSPC, "no place for %s: this program has %u far devices already", url.c_str(), kDevicesMax)
            .remedy("let regions share devices; they stay open until the program ends"));
  auto space = Space::create(*device, space_bytes_);
  if (!space) return std::unexpected(space.error());
  LockGuard guard(mutex_);
  set(index, std::move(device), std::move(url));
  entries_[index].space = std::move(*space);
  for (Channels* each : open_)
    if (Status status = each->open(index); !status) {
      for (Channels* one : open_) one->channels_[index].reset();
      entries_[index] = {};
      return std::unexpected(status.error());
    }
  for (Channels* each : open_) each->count_ = index + 1;
  if (!entries_[index].synchronous) all_synchronous_.store(false, std::memory_order_relaxed);
  // release: pairs with count(); who sees the device sees what it is
  count_.store(index + 1, std::memory_order_release);
  return index;
}

Result<std::unique_ptr<Channels>> Devices::open_channels() {
  std::unique_ptr<Channels> channels(new Channels(*this));
  LockGuard guard(mutex_);
  for (std::uint32_t device = 0; device < count(); ++device)
    if (Status status = channels->open(device); !status) return std::unexpected(status.error());
  channels->count_ = count();
  open_.push_back(channels.get());
  return channels;
}

void Devices::closed(Channels* channels) {
  LockGuard guard(mutex_);
  std::erase(open_, channels);
}

Channels::~Channels() {
  if (count_ != 0) devices_.closed(this);
}

Status Channels::open(std::uint32_t device) {
  auto channel = devices_.entries_[device].device->open_channel();
  if (!channel) return std::unexpected(channel.error());
  channels_[device] = std::move(*channel);
  return {};
}

// In order: what a device does not take now is not overtaken by what comes after it.
int Channels::submit_apart(std::span<const Request> requests) {
  std::size_t done = 0;
  while (done < requests.size()) {
    std::uint32_t device = requests[done].page.device();
    std::size_t length = 1, most = std::min(requests.size() - done, kStretch);
    while (length < most && requests[done + length].page.device() == device) ++length;
    int taken = submit_stretch(requests.subspan(done, length));
    done += static_cast<std::size_t>(taken);
    if (taken < static_cast<int>(length)) break;
  }
  return static_cast<int>(done);
}

// All on one device, kStretch at most. How many of them; the device may be lost.
int Channels::submit_stretch(std::span<const Request> requests) {
  std::array<Request, kStretch> own;
  std::uint32_t device = requests[0].page.device();
  std::ranges::copy(requests, own.begin());
  for (Request& each : std::span(own).first(requests.size())) each.page = each.page.on_device();
  int taken = channels_[device]->submit(std::span(own).first(requests.size()));
  if (taken >= 0) return taken;
  std::size_t failed = std::min<std::size_t>(requests.size(), failed_.room());
  for (const Request& each : requests.first(failed)) failed_.put({each.tag, -taken});
  return static_cast<int>(failed);
}

int Channels::poll_all(std::span<Completion> completions) {
  int done = failed_.take(completions);
  for (std::uint32_t i = 0; i < count_; ++i) {
    Channel& channel = *channels_[(next_ + i) % count_];
    if (channel.in_flight() != 0) done += channel.poll(completions.subspan(static_cast<std::size_t>(done)));
  }
  next_ = (next_ + 1) % count_;
  return done;
}

std::uint32_t Channels::in_flight() const {
  std::uint32_t sum = failed_.size();
  for (std::uint32_t device = 0; device < count_; ++device) sum += channels_[device]->in_flight();
  return sum;
}

void Channels::wait(std::uint64_t timeout_ns) {
  if (count_ == 1) return channels_[0]->wait(timeout_ns);
  if (failed_.size() != 0) return;
  Channel* busy = nullptr;
  std::size_t busy_count = 0;
  for (std::uint32_t device = 0; device < count_; ++device) {
    if (channels_[device]->in_flight() == 0) continue;
    busy = channels_[device].get();
    ++busy_count;
    if (devices_.synchronous(device)) return;  // poll() finds it
  }
  if (busy_count == 0) return;
  if (busy_count == 1) return busy->wait(timeout_ns);
  std::array<pollfd, kDevicesMax> descriptors;
  std::size_t count = events(descriptors);
  timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  // One that has no descriptor is asked at once.
  if (count == busy_count) ::ppoll(descriptors.data(), count, &timeout, nullptr);
}

std::size_t Channels::events(std::span<pollfd, kDevicesMax> out) const {
  std::size_t count = 0;
  for (std::uint32_t device = 0; device < count_; ++device) {
    if (count_ != 1 && channels_[device]->in_flight() == 0) continue;
    if (int descriptor = channels_[device]->event_descriptor(); descriptor >= 0)
      out[count++] = {descriptor, POLLIN, 0};
  }
  return count;
}

}  // namespace hinterland::far
