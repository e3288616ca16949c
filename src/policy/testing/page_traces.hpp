// Twenty lists of page uses, the same as in bench/policies/against_libcachesim.py.
#pragma once

#include <cstdint>

namespace hinterland {

class PageTrace {
 public:
  static constexpr std::uint64_t kLength = 40000;

  explicit PageTrace(unsigned number) : number_(number), state_(number + 1) {}

  // Pages that the policy's cache has room for.
  std::uint64_t capacity() const {
    constexpr std::uint64_t kParts[] = {3, 5, 10};
    return pages() / kParts[number_ % 3];
  }
  // The page of use number `at`; to be asked in this order.
  std::uint64_t next(std::uint64_t at) {
    std::uint64_t u = random();
    std::uint64_t skewed = ((u * u >> 32) * u >> 32) * pages() >> 32;
    switch (number_ % 5) {
      case 0:
        return u * pages() >> 32;
      case 1:
        return skewed;
      case 2:
        return (u & 3) != 0 ? at % (pages() / 4) : skewed;
      case 3:
        return (u & 1) != 0 ? pages() + at : skewed;
      default:
        return at / 5000 * pages() / 2 + skewed;
    }
  }

 private:
  std::uint64_t pages() const { return 800 + 150 * std::uint64_t{number_}; }
  std::uint64_t random() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 32;
  }

  unsigned number_;
  std::uint64_t state_;
};

}  // namespace hinterland
