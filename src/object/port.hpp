// A channel to the far device with pages to read into and to write from, and its transfers done to their end.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "base/units.hpp"
#include "far/device.hpp"

namespace hinterland::object {

class Port {
 public:
  static constexpr std::uint32_t kPages = 64;
  static Result<std::unique_ptr<Port>> open(far::Device& device);

  // In a forked child, whose channel is its parent's: nothing of it is used any more, nor given back.
  void abandon() { static_cast<void>(channel_.release()); }

  // For who does not block: requests for pages of this port, whose tags are his.
  far::Channel& channel() { return *channel_; }
  std::byte* page(std::uint32_t index) { return pages_->bytes[index].data(); }
  // Does pages [first, first + pages.size()) of this port, all together. Blocks. errors[i]: 0 or errno. How many
  // failed.
  std::uint32_t transfer(far::Operation operation, std::span<const far::FarPage> pages, std::span<int> errors,
                         std::uint32_t first = 0);
  // Requests into pages of this port, whose tags are overwritten. As above.
  std::uint32_t transfer(std::span<far::Request> requests, std::span<int> errors);

 private:
  struct alignas(kPageSize) Pages {
    std::array<std::array<std::byte, kPageSize>, kPages> bytes;
  };
  std::unique_ptr<far::Channel> channel_;
  std::unique_ptr<Pages> pages_;
};

}  // namespace hinterland::object
