#include "preload/descriptors.hpp"

#include "preload/state.hpp"

namespace hinterland::descriptors {

Protected::Protected() {
  count_ = std::min(pager().descriptors(all_.data(), kMax), kMax);
  std::sort(all_.begin(), all_.begin() + count_);
}

Protected::Protected(const int* descriptors, std::size_t count) : count_(std::min(count, kMax)) {
  std::copy_n(descriptors, count_, all_.begin());
  std::sort(all_.begin(), all_.begin() + count_);
}

bool Protected::contains(int descriptor) const {
  return std::binary_search(all_.begin(), all_.begin() + count_, descriptor);
}

bool is_protected(int descriptor) {
  if (descriptor < 0) return false;
  std::array<int, kMax> all;
  std::size_t count = std::min(pager().descriptors(all.data(), kMax), kMax);
  return std::find(all.begin(), all.begin() + count, descriptor) != all.begin() + count;
}

}  // namespace hinterland::descriptors
