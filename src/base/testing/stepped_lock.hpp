// A lock guard that steps: another mover may go on before it locks. What is done to an object's word under the lock
// of its region and what is done without would otherwise never come between each other there.
#pragma once

#include "base/mutex.hpp"

namespace hinterland::testing {

// In scheduler.cpp.
void step_before_lock(const void* mutex);
void step_locked(const void* mutex);
void step_before_unlock(const void* mutex);

class __attribute__((scoped_lockable)) SteppedLock {
 public:
  explicit SteppedLock(Mutex& mutex) __attribute__((acquire_capability(mutex))) : mutex_(mutex) {
    step_before_lock(&mutex_);
    mutex_.lock();
    step_locked(&mutex_);
  }
  ~SteppedLock() __attribute__((release_capability())) {
    step_before_unlock(&mutex_);
    mutex_.unlock();
  }
  SteppedLock(const SteppedLock&) = delete;
  SteppedLock& operator=(const SteppedLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace hinterland::testing
