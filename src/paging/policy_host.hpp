// Calls the policy, one call at a time, and gives it the memory it asks for.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "hinterland/policy.h"

namespace hinterland {

class PolicyHost {
 public:
  Status create(const hl_policy_ops* policy, std::uint32_t window_pages);

  void arrived(PageIndex first, std::uint32_t count, hl_arrival why, std::uint8_t priority = 0) {
    LockGuard guard(mutex_);
    ops_->arrived(state_, first.value, count, why, priority);
  }
  void departed(PageIndex first, std::uint32_t count) {
    LockGuard guard(mutex_);
    ops_->departed(state_, first.value, count);
  }
  std::size_t choose_victims(std::span<hl_page> out) {
    LockGuard guard(mutex_);
    return ops_->choose_victims(state_, out.data(), static_cast<std::uint32_t>(out.size()));
  }
  std::uint64_t size() {
    LockGuard guard(mutex_);
    return ops_->size(state_);
  }
  const char* name() const { return ops_->name; }
  // Held across fork(2), so that the child finds the policy's lists whole.
  Mutex& mutex() { return mutex_; }

 private:
  Mutex mutex_;
  const hl_policy_ops* ops_ = nullptr;
  void* state_ = nullptr;  // guarded by mutex_
};

}  // namespace hinterland
