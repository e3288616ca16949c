// Protects the runtime's descriptors from programs that close all they can.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace hinterland::descriptors {

inline constexpr std::size_t kMax = 64;

// Sorted, as they are now (a device that reconnects gets new ones).
class Protected {
 public:
  Protected();                                           // the pager's
  Protected(const int* descriptors, std::size_t count);  // for tests
  bool contains(int descriptor) const;
  // Calls part(first, last) for the parts of [first, last] without protected descriptors, until one returns other
  // than 0, which it returns.
  template <typename Part>
  int for_unprotected(unsigned first, unsigned last, Part part) const {
    for (std::size_t i = 0; i < count_; ++i) {
      auto ours = static_cast<unsigned>(all_[i]);
      if (ours < first || ours > last) continue;
      if (ours > first)
        if (int result = part(first, ours - 1); result != 0) return result;
      if (ours == last) return 0;
      first = ours + 1;
    }
    return part(first, last);
  }

 private:
  std::array<int, kMax> all_;
  std::size_t count_;
};

// Whether a number is one of the pager's. For calls about one descriptor; may be called in signal handlers.
bool is_protected(int descriptor);

}  // namespace hinterland::descriptors
