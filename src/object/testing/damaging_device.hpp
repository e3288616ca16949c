// A far device whose reads come back as a test likes: for what nobody but the reader can notice.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "far/device.hpp"

namespace hinterland::object::testing {

// Of another device, whose pages are read through channels and in parts.
class DamagingDevice final : public far::Device {
 public:
  explicit DamagingDevice(std::unique_ptr<far::Device> inner) : inner_(std::move(inner)) {
    info_ = inner_->info();
    info_.direct = false;
  }
  // Of each read that went well: may change the bytes that came. True: it has. A page that was changed fails with
  // EBADMSG, for devices check pages; a part of one does not. Any thread; set before anything is read.
  std::function<bool(const far::Request&)> damage;

  const far::DeviceInfo& info() const override { return info_; }
  far::DeviceUsage usage() const override { return inner_->usage(); }
  Result<std::uint32_t> allocate_slab() override { return inner_->allocate_slab(); }
  void release_slab(std::uint32_t slab) override { inner_->release_slab(slab); }
  void discard(std::span<const far::FarPage> pages) override { inner_->discard(pages); }
  bool settle() override { return inner_->settle(); }
  Result<std::unique_ptr<far::Channel>> open_channel() override {
    auto inner = inner_->open_channel();
    if (!inner) return std::unexpected(inner.error());
    return std::make_unique<Channel>(*this, std::move(*inner));
  }
  Status after_fork_in_child() override { return inner_->after_fork_in_child(); }
  int lost() const override { return inner_->lost(); }
  std::size_t descriptors(int* out, std::size_t max) const override { return inner_->descriptors(out, max); }

 private:
  class Channel final : public far::Channel {
   public:
    Channel(DamagingDevice& device, std::unique_ptr<far::Channel> inner) : device_(device), inner_(std::move(inner)) {
      for (std::uint32_t i = 0; i < device_.info_.in_flight_max; ++i) free_.push_back(i);
      under_way_.resize(free_.size());
    }
    int submit(std::span<const far::Request> requests) override {
      std::vector<far::Request> own(requests.begin(),
                                    requests.begin() + static_cast<long>(std::min(requests.size(), free_.size())));
      for (std::size_t i = 0; i < own.size(); ++i) own[i].tag = free_[free_.size() - 1 - i];
      const int took = inner_->submit(own);
      for (int i = 0; i < took; ++i) {
        under_way_[free_.back()] = requests[static_cast<std::size_t>(i)];
        free_.pop_back();
      }
      return took;
    }
    int poll(std::span<far::Completion> completions) override {
      const int count = inner_->poll(completions);
      for (far::Completion& each : completions.first(static_cast<std::size_t>(std::max(count, 0)))) {
        free_.push_back(static_cast<std::uint32_t>(each.tag));
        const far::Request& request = under_way_[each.tag];
        each.tag = request.tag;
        if (each.error == 0 && request.operation == far::Operation::read && device_.damage &&
            device_.damage(request) && request.whole())
          each.error = EBADMSG;
      }
      return count;
    }
    void wait(std::uint64_t timeout_ns) override { inner_->wait(timeout_ns); }
    int event_descriptor() const override { return inner_->event_descriptor(); }
    std::uint32_t in_flight() const override { return inner_->in_flight(); }

   private:
    DamagingDevice& device_;
    std::unique_ptr<far::Channel> inner_;
    std::vector<std::uint32_t> free_;
    std::vector<far::Request> under_way_;
  };

  std::unique_ptr<far::Device> inner_;
  far::DeviceInfo info_;
};

}  // namespace hinterland::object::testing
