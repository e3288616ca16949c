// Completions of a synchronous channel between submit() and poll(): a ring of fixed size.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "far/device.hpp"

namespace hinterland::far {

template <std::uint32_t kCapacity>
class ReadyList {
  static_assert((kCapacity & (kCapacity - 1)) == 0, "a power of two, so that the indexes may wrap around");

 public:
  std::uint32_t size() const { return end_ - begin_; }
  std::uint32_t room() const { return kCapacity - size(); }
  // There must be room.
  void put(Completion completion) { ring_[end_++ % kCapacity] = completion; }
  int take(std::span<Completion> out) {
    auto count = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), size()));
    for (std::uint32_t i = 0; i < count; ++i) out[i] = ring_[begin_++ % kCapacity];
    return static_cast<int>(count);
  }

 private:
  std::array<Completion, kCapacity> ring_;
  std::uint32_t begin_ = 0, end_ = 0;
};

}  // namespace hinterland::far
