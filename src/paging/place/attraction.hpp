// Whether a helper that is woken on another CPU draws the thread that faults away from the handler.
//
// Schedulers of virtual machines like to put a thread that wakes up on a CPU that is awake rather than on one that
// sleeps. Then a thread of ours that has just been woken attracts the program's thread, and the next faults are
// served from afar until the handler has followed: ten times what the helper spares. So what came of earlier wake-ups
// decides about the next one, and it is tried again now and then (docs/adr/0033-helpers-that-attract.md).
//
// One thread.
#pragma once

#include <cstdint>

namespace hinterland {

class Attraction {
 public:
  static constexpr unsigned kFaultsAfter = 8;  // a thread that moves in so many faults did so for the helper
  static constexpr unsigned kTryAgainAfter = 64;

  // Does it pay to wake a helper now?
  bool may_wake() { return share_ <= kShareMax || ++refused_ % kTryAgainAfter == 0; }
  // A helper was woken.
  void woke() { faults_left_ = away_ ? 0 : kFaultsAfter; }
  // A fault came, and its thread is `away`: on another CPU than the handler.
  void on_fault(bool away) {
    away_ = away;
    if (faults_left_ == 0) return;
    if (away) {
      faults_left_ = 0;
      note(kAll);
    } else if (--faults_left_ == 0) {
      note(0);
    }
  }

 private:
  static constexpr unsigned kAll = 256, kShareMax = kAll / 4, kWeight = 8;

  void note(unsigned outcome) { share_ = (share_ * (kWeight - 1) + outcome) / kWeight; }

  unsigned share_ = 0;  // of the wake-ups that attracted, of late; kAll is every one
  unsigned refused_ = 0;
  unsigned faults_left_ = 0;  // until the last wake-up counts as harmless
  bool away_ = false;
};

}  // namespace hinterland
