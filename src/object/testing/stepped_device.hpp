// A far device under a scheduler: another mover may go on before each page is read or written, and a page that was
// given back is no longer what it was.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/testing/scheduler.hpp"
#include "far/device.hpp"

namespace hinterland::object::testing {

using hinterland::testing::mix;
using hinterland::testing::Scheduler;

class SteppedDevice final : public far::Device {
 public:
  // direct: pages are copied straight from the device; else they are read through channels.
  explicit SteppedDevice(bool direct) {
    info_.url = "stepped:";
    info_.capacity_bytes = far::kSlabBytes;
    info_.best_batch_pages = 32;
    info_.synchronous = true;
    info_.direct = direct;
  }
  // Whether a page cannot be read, or written: asked for each.
  std::function<bool(far::Operation)> fails;
  // What went wrong: a page was read that holds nothing, or written twice.
  const std::string& wrong() const { return wrong_; }
  // Of all that is on it.
  std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (const auto& [page, bytes] : written_) hash = mix(mix(hash, page), bytes);
    return hash;
  }

  const far::DeviceInfo& info() const override { return info_; }
  far::DeviceUsage usage() const override { return {}; }
  Result<std::uint32_t> allocate_slab() override {
    if (taken_) return std::unexpected(Error::make(ENOSPC, "full"));
    taken_ = true;
    return 0;
  }
  void release_slab(std::uint32_t) override { taken_ = false; }
  void discard(std::span<const far::FarPage> pages) override {
    for (const far::FarPage page : pages) {
      if (written_.erase(page.value) != 0) std::memset(bytes_of(page), 0xdd, kPageSize);
    }
  }
  const void* direct_page(far::FarPage page) const override {
    step(far::Operation::read, page);
    const_cast<SteppedDevice*>(this)->look_at(page);
    return bytes_of(page);
  }
  Result<std::unique_ptr<far::Channel>> open_channel() override { return std::make_unique<Channel>(*this); }
  Status after_fork_in_child() override { return {}; }

 private:
  class Channel final : public far::Channel {
   public:
    explicit Channel(SteppedDevice& device) : device_(device) {}
    int submit(std::span<const far::Request> requests) override {
      for (const far::Request& request : requests) done_.push_back({request.tag, device_.serve(request)});
      return static_cast<int>(requests.size());
    }
    int poll(std::span<far::Completion> completions) override {
      const std::size_t count = std::min(done_.size(), completions.size());
      std::copy_n(done_.begin(), count, completions.begin());
      done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
      return static_cast<int>(count);
    }
    void wait(std::uint64_t) override {}
    int event_descriptor() const override { return -1; }
    std::uint32_t in_flight() const override { return static_cast<std::uint32_t>(done_.size()); }

   private:
    SteppedDevice& device_;
    std::vector<far::Completion> done_;
  };

  static constexpr std::size_t kPages = 256;  // that a test comes to use, of the slab

  static std::byte* bytes_of(far::FarPage page) {
    alignas(kPageSize) static std::array<std::byte, kPages * kPageSize> memory;
    HL_CHECK(page.value < kPages);
    return memory.data() + bytes_of_pages(page.value);
  }
  static void step(far::Operation operation, far::FarPage page) {
    if (Scheduler* scheduler = Scheduler::running()) {
      scheduler->goes_on();
      scheduler->point(mix(30 + static_cast<unsigned>(operation), page.value));
    }
  }
  void look_at(far::FarPage page) {
    if (!written_.contains(page.value)) wrong_ = "a far page is read that holds nothing";
  }
  int serve(const far::Request& request) {
    step(request.operation, request.page);
    if (fails && fails(request.operation)) return EIO;
    if (request.operation == far::Operation::read) {
      look_at(request.page);
      std::memcpy(request.buffer, bytes_of(request.page), kPageSize);
      return 0;
    }
    if (written_.contains(request.page.value)) wrong_ = "a far page is written that holds something";
    std::memcpy(bytes_of(request.page), request.buffer, kPageSize);
    std::uint64_t hash = 0;
    for (std::size_t at = 0; at < kPageSize; at += sizeof hash)
      hash = mix(hash, *reinterpret_cast<const std::uint64_t*>(bytes_of(request.page) + at));
    written_[request.page.value] = hash;
    return 0;
  }

  far::DeviceInfo info_;
  bool taken_ = false;
  std::map<std::uint64_t, std::uint64_t> written_;  // pages, and a hash of what they hold
  std::string wrong_;
};

}  // namespace hinterland::object::testing
