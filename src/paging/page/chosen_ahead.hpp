// How much of what a policy would read ahead is brought: as much as proves to be used.
//
// Nobody sees whether a page is used that is there. So now and then a page that the policy chose is withheld, and
// what becomes of it is looked at: if the program faults on it (or hints it) before as many pages have come in as
// local memory holds, it would have been used, else it would have left unused. Where less than a quarter of such
// samples are used, half as many pages may come with a miss; where at least half are, twice as many
// (docs/policies.md).
//
// The rule is the same in a replay, so pages go by the policy's numbers. One call at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hinterland/policy.h"

namespace hinterland {

class ChosenAhead {
 public:
  static constexpr std::size_t kMost = 64;         // pages with a miss
  static constexpr unsigned kSampleEvery = 16;     // of the pages that are chosen and far
  static constexpr unsigned kJudged = 16;          // samples; then what is allowed may change
  static constexpr std::size_t kSamplesMax = 128;  // that are waited for; of more pages nothing is known

  // The program wants a page that is far.
  void wants(hl_page page) {
    if (Sample* sample = find(page)) {
      forget(*sample);
      judge(true);
    }
  }

  // What the policy would bring, most urgent first; pages that are allowed move to the front. Returns how many.
  // `came`: pages that have come in so far. `room`: how many local memory holds. `is_far`: whether a page would be
  // fetched at all.
  template <typename IsFar>
  std::size_t allow(std::span<hl_page> chosen, std::uint64_t came, std::uint64_t room, IsFar&& is_far) {
    judge_old(came, room, is_far);
    std::size_t allowed = 0;
    for (hl_page page : chosen) {
      if (allowed == allowed_) break;
      if (find(page) != nullptr) continue;
      if (is_far(page) && ++chosen_ % kSampleEvery == 0 && withhold(page, came)) continue;
      chosen[allowed++] = page;
    }
    return allowed;
  }

  // Pages that may come with a miss now.
  std::size_t allowed() const { return allowed_; }

 private:
  struct Sample {
    hl_page page = HL_NO_PAGE;
    std::uint64_t came = 0;  // when it was withheld
  };
  static constexpr std::size_t kEndings = 8 * kSamplesMax;

  Sample* find(hl_page page) {
    if (endings_[page % kEndings] == 0) return nullptr;
    auto found = std::ranges::find(samples_, page, &Sample::page);
    return found != samples_.end() ? &*found : nullptr;
  }
  bool withhold(hl_page page, std::uint64_t came) {
    Sample& free = samples_[next_ % kSamplesMax];
    if (free.page != HL_NO_PAGE) return false;
    free = {page, came};
    ++endings_[page % kEndings];
    ++next_;
    return true;
  }
  void forget(Sample& sample) {
    --endings_[sample.page % kEndings];
    sample.page = HL_NO_PAGE;
  }
  // Samples lie in the order in which they were withheld. One that came in otherwise, or was given back, says
  // nothing.
  template <typename IsFar>
  void judge_old(std::uint64_t came, std::uint64_t room, IsFar&& is_far) {
    for (; oldest_ != next_; ++oldest_) {
      Sample& sample = samples_[oldest_ % kSamplesMax];
      if (sample.page == HL_NO_PAGE) continue;
      if (came - sample.came < room) return;
      bool still_far = is_far(sample.page);
      forget(sample);
      if (still_far) judge(false);
    }
  }
  void judge(bool used) {
    used_ += used;
    if (++judged_ < kJudged) return;
    if (used_ * 4 < kJudged)
      allowed_ = std::max<std::size_t>(allowed_ / 2, 1);
    else if (used_ * 2 >= kJudged)
      allowed_ = std::min(allowed_ * 2, kMost);
    used_ = judged_ = 0;
  }

  std::array<Sample, kSamplesMax> samples_{};
  std::array<std::uint8_t, kEndings> endings_{};  // how many samples have a number that ends so
  std::uint64_t oldest_ = 0, next_ = 0;
  std::size_t allowed_ = kMost;
  unsigned chosen_ = 0, used_ = 0, judged_ = 0;
};

}  // namespace hinterland
