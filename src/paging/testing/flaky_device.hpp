// mem: with a will of its own, for tests of the page machine: fails when told to, delivers late and in another order,
// and lets the test look at a page without a request.
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <random>
#include <vector>

#include "far/device.hpp"

namespace hinterland::testing {

class FlakyDevice final : public far::Device {
 public:
  struct Faults {
    double reads = 0, writes = 0;  // share that fails with EIO
    bool full = false;             // no more slabs
    int channels = 0;              // so many are refused next
    int lost = 0;                  // for good: with this errno
  };

  // direct: pages are copied straight from the device; else requests go through channels, and come back in any order,
  // or, `at_once`, all of them when they are next asked after.
  FlakyDevice(std::unique_ptr<far::Device> inner, bool direct, std::uint64_t seed, bool at_once = false)
      : inner_(std::move(inner)), random_(seed) {
    info_ = inner_->info();
    info_.direct = direct;
    info_.synchronous = direct || at_once;
  }
  Faults faults;
  // Instead of chance: which of so many; for the order in which reads complete, one at a time, and for what fails
  // where a share does.
  std::function<std::size_t(std::size_t choices)> decide;
  std::function<void(std::span<const far::FarPage>)> on_discard;
  std::uint64_t submitted = 0;  // requests, by all channels
  const void* peek(far::FarPage page) const { return inner_->direct_page(page); }

  const far::DeviceInfo& info() const override { return info_; }
  far::DeviceUsage usage() const override { return inner_->usage(); }
  Result<std::uint32_t> allocate_slab() override {
    if (faults.full) return std::unexpected(Error::make(ENOSPC, "full"));
    return inner_->allocate_slab();
  }
  void release_slab(std::uint32_t slab) override { inner_->release_slab(slab); }
  void discard(std::span<const far::FarPage> pages) override {
    if (on_discard) on_discard(pages);
    inner_->discard(pages);
  }
  int lost() const override { return faults.lost; }
  const void* direct_page(far::FarPage page) const override { return info_.direct ? peek(page) : nullptr; }
  Status after_fork_in_child() override { return inner_->after_fork_in_child(); }
  Result<std::unique_ptr<far::Channel>> open_channel() override {
    if (faults.channels > 0 && faults.channels-- > 0)
      return std::unexpected(Error::make(ETIMEDOUT, "the device does not answer"));
    auto inner = inner_->open_channel();
    if (!inner) return std::unexpected(inner.error());
    return std::make_unique<Channel>(*this, std::move(*inner));
  }

 private:
  class Channel final : public far::Channel {
   public:
    Channel(FlakyDevice& device, std::unique_ptr<far::Channel> inner) : device_(device), inner_(std::move(inner)) {}
    int submit(std::span<const far::Request> requests) override {
      if (device_.lost() != 0) return -device_.lost();
      std::size_t room = 24 - waiting_.size();  // small, so that "full" happens
      std::size_t count = std::min(room, requests.size());
      device_.submitted += count;
      waiting_.insert(waiting_.end(), requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(count));
      return static_cast<int>(count);
    }
    int poll(std::span<far::Completion> completions) override {
      std::size_t count = std::min({waiting_.size(), completions.size(), device_.completions_at_once(waiting_)});
      for (std::size_t i = 0; i < count; ++i) {
        std::swap(waiting_[device_.which(waiting_)], waiting_.back());
        completions[i] = {waiting_.back().tag, device_.serve(*inner_, waiting_.back())};
        waiting_.pop_back();
      }
      return static_cast<int>(count);
    }
    void wait(std::uint64_t) override {}
    int event_descriptor() const override { return -1; }
    std::uint32_t in_flight() const override { return static_cast<std::uint32_t>(waiting_.size()); }

   private:
    FlakyDevice& device_;
    std::unique_ptr<far::Channel> inner_;
    std::vector<far::Request> waiting_;
  };

  // Writes are waited for together: their order makes no difference.
  bool decides_order(const std::vector<far::Request>& waiting) const {
    return decide && !waiting.empty() && waiting.front().operation == far::Operation::read;
  }
  std::size_t completions_at_once(const std::vector<far::Request>& waiting) {
    if (info_.synchronous) return waiting.size();
    if (decide) return decides_order(waiting) ? 1 : waiting.size();
    return 1 + random_() % 24;
  }
  std::size_t which(const std::vector<far::Request>& waiting) {
    if (decide) return decides_order(waiting) ? decide(waiting.size()) : 0;
    return random_() % waiting.size();
  }
  bool fails(double share) {
    if (decide && share > 0 && share < 1) return decide(2) == 1;
    return std::uniform_real_distribution<>()(random_) < share;
  }

  int serve(far::Channel& inner, const far::Request& request) {
    if (faults.lost != 0) return faults.lost;
    if (fails(request.operation == far::Operation::read ? faults.reads : faults.writes)) return EIO;
    far::Completion done{};
    if (inner.submit({&request, 1}) != 1 || inner.poll({&done, 1}) != 1) return EPROTO;
    return done.error;
  }

  std::unique_ptr<far::Device> inner_;
  std::mt19937_64 random_;
  far::DeviceInfo info_;
};

}  // namespace hinterland::testing
