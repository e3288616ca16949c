// Calls the policy, one call at a time, and gives it the memory it asks for. A policy knows pages by their dense
// numbers (page_table.hpp), so that its arrays stay small where memory is touched sparsely.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "hinterland/policy.h"
#include "paging/page_table.hpp"

namespace hinterland {

class PolicyHost {
 public:
  // Borrows the table for the life of the process.
  Status create(const hl_policy_ops* policy, const PageTable& pages);

  void arrived(PageIndex first, std::uint32_t count, hl_arrival why, std::uint8_t priority = 0) {
    LockGuard guard(mutex_);
    for_each_run(first, count,
                 [&](hl_page page, std::uint32_t length) { ops_->arrived(state_, page, length, why, priority); });
  }
  void departed(PageIndex first, std::uint32_t count) {
    LockGuard guard(mutex_);
    for_each_run(first, count, [&](hl_page page, std::uint32_t length) { ops_->departed(state_, page, length); });
  }
  // Fills `out` with indexes into the window; returns how many.
  std::size_t choose_victims(std::span<hl_page> out) {
    LockGuard guard(mutex_);
    std::size_t chosen = ops_->choose_victims(state_, out.data(), static_cast<std::uint32_t>(out.size()));
    for (hl_page& page : out.first(chosen)) page = pages_->page_of(page).value;
    return chosen;
  }
  std::uint64_t size() {
    LockGuard guard(mutex_);
    return ops_->size(state_);
  }
  const char* name() const { return ops_->name; }
  // Held across fork(2), so that the child finds the policy's lists whole.
  Mutex& mutex() { return mutex_; }

 private:
  // The pages in use of [first, first + count), by group: there their dense numbers follow each other.
  template <typename Visit>
  void for_each_run(PageIndex first, std::uint32_t count, Visit&& visit) {
    for (std::uint32_t at = first.value, end = first.value + count; at < end;) {
      std::uint32_t left_in_group = PageTable::kGroupPages - at % PageTable::kGroupPages;
      std::uint32_t length = end - at < left_in_group ? end - at : left_in_group;
      if (pages_->is_used({at})) visit(pages_->dense_of({at}), length);
      at += length;
    }
  }

  Mutex mutex_;
  const PageTable* pages_ = nullptr;
  const hl_policy_ops* ops_ = nullptr;
  void* state_ = nullptr;  // guarded by mutex_
};

}  // namespace hinterland
