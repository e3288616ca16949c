// Which pages a plug-in was told of and has not given away: so that its answers can be checked, and another policy
// can take over what it holds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hinterland/policy.h"
#include "paging/page/reservation.hpp"

namespace hinterland {

// Not thread-safe: belongs to who holds the policy's lock.
class HeldPages {
 public:
  // A bit for each of so many pages. False when there is no memory for them.
  bool create(std::uint32_t pages) {
    words_ = static_cast<std::uint64_t*>(reserve_zeroed((std::uint64_t{pages} / 64 + 1) * sizeof *words_));
    pages_ = pages;
    return words_ != nullptr;
  }
  std::uint64_t count() const { return count_; }

  void add(hl_page first, std::uint32_t count) {
    for (hl_page page = first; page != first + count; ++page) {
      count_ += holds(page) ? 0 : 1;
      words_[page / 64] |= bit(page);
    }
    end_ = std::max(end_, first + count);
  }
  void remove(hl_page first, std::uint32_t count) {
    for (hl_page page = first; page != first + count; ++page) take(page);
  }
  // False for one that is not held.
  bool take(hl_page page) {
    if (page >= pages_ || !holds(page)) return false;
    words_[page / 64] &= ~bit(page);
    --count_;
    return true;
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t word = 0; word < (end_ + 63) / 64; ++word)
      for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
        visit(word * 64 + static_cast<hl_page>(std::countr_zero(left)));
  }

 private:
  static std::uint64_t bit(hl_page page) { return std::uint64_t{1} << page % 64; }
  bool holds(hl_page page) const { return (words_[page / 64] & bit(page)) != 0; }

  std::uint64_t* words_ = nullptr;
  std::uint32_t pages_ = 0, end_ = 0;  // none is held from there on
  std::uint64_t count_ = 0;
};

}  // namespace hinterland
