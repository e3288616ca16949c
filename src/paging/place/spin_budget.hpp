// Whether it pays to look for an answer without sleeping: yes where answers have been coming faster than a sleep and
// a wake-up take. Both ends of a connection have to look for that, so it is tried again now and then, a few times in
// a row: an answer to one that slept tells nothing about what would be.
//
// One thread.
#pragma once

#include <cstdint>

namespace hinterland {

class SpinBudget {
 public:
  static constexpr std::uint64_t kSpinNs = 30'000;  // a sleep and wake-up costs more than this (ADR 0002)

  // A question went out; or an answer came, and others are still to come.
  void start(std::uint64_t now_ns) {
    started_ns_ = now_ns;
    if (credit_ == 0 && ++without_ % kTryAgainAfter == 0) credit_ = kTries * kLost;
    spinning_ = credit_ > 0;
  }
  // May the caller look again rather than sleep?
  bool spin(std::uint64_t now_ns) {
    if (!spinning_) return false;
    if (now_ns - started_ns_ < kSpinNs) return true;
    spinning_ = false;
    credit_ = credit_ > kLost ? credit_ - kLost : 0;
    return false;
  }
  // An answer came.
  void answered() {
    if (spinning_ && credit_ < kCreditMax) ++credit_;
  }

 private:
  static constexpr unsigned kLost = 4;  // a spin in vain costs as much as four good ones save
  static constexpr unsigned kCreditMax = 64, kTries = 4, kTryAgainAfter = 64;
  std::uint64_t started_ns_ = 0;
  unsigned credit_ = kCreditMax / 2;
  unsigned without_ = 0;
  bool spinning_ = false;
};

}  // namespace hinterland
