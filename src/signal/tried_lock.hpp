// A lock that is tried for a while: a handler of a signal may have interrupted the thread that holds it. Who does not
// get it does without.
#pragma once

#include <sys/syscall.h>

#include <atomic>

#include "base/raw_call.hpp"

namespace hinterland {

class TriedLock {
 public:
  explicit TriedLock(std::atomic<bool>& busy) : busy_(busy) {
    constexpr int kTries = 10000;
    for (int tries = 0; tries < kTries && !taken_; ++tries) {
      taken_ = !busy_.exchange(true, std::memory_order_acquire);
      if (!taken_) raw::call(SYS_sched_yield);
    }
  }
  ~TriedLock() {
    if (taken_) busy_.store(false, std::memory_order_release);
  }
  TriedLock(const TriedLock&) = delete;
  TriedLock& operator=(const TriedLock&) = delete;
  explicit operator bool() const { return taken_; }

 private:
  std::atomic<bool>& busy_;
  bool taken_ = false;
};

}  // namespace hinterland
