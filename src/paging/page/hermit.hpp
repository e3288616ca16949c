// Hermit's feedback in the place of our own (--reclaim hermit; docs/adr/0063-hermits-feedback.md): who brings pages
// in looks at the budget and calls as many reclaim threads as the rule says (out/hermit_reclaimers.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "paging/page/budget.hpp"
#include "paging/page/hermit_schedule.hpp"
#include "paging/page/refault_distances.hpp"
#include "paging/page/speculative_reads.hpp"

namespace hinterland {

// Any thread, where nothing else is said.
class Hermit {
 public:
  // Borrows the budget for the life of the process, and leaves none of it free by its own rule.
  Status create(Budget& budget, std::uint64_t window_pages, unsigned threads) {
    budget_ = &budget;
    budget.leave_to_others();
    schedule_.set_threads(threads);
    return distances_.create(window_pages);
  }

  // Pages have become local, or fewer may be: calls the threads that are to reclaim. Where another thread is doing
  // that, there is nothing to do. Does not block. (Hermit inlines this into the charging of pages.)
  void charged() {
    if (!mutex_.try_lock()) return;
    if (std::uint64_t now = now_ns(); schedule_.wants_look(now))
      schedule_.look(now, budget_->charged(), static_cast<std::uint64_t>(std::max<std::int64_t>(budget_->local(), 0)),
                     distances_.take_mean());
    unsigned wanted = schedule_.threads(budget_->free());
    mutex_.unlock();
    for (unsigned number = 0; number < wanted; ++number) call(number);
  }

  // --- a page, whose busy bit is held
  void left(PageIndex page) { distances_.left(page); }
  void came(PageIndex page) { distances_.came(page, budget_->local()); }

  // --- a reclaim thread
  void wait_for_call(unsigned number) {
    while (calls_[number].exchange(0) == 0) futex_wait(&calls_[number], 0);
  }
  bool is_wanted(unsigned number) { return number < schedule_.threads(budget_->free()); }
  // The first thread's.
  void note_reclaimed(std::size_t pages, std::uint64_t ns) { schedule_.note_reclaimed(pages, ns); }

  SpeculativeReads& speculative_reads() { return reads_; }
  // Pages that it keeps free, about: those are not the program's.
  std::int64_t kept_in_hand() const { return std::min(schedule_.low_mark(), budget_->limit()); }

  void after_fork_in_child() {
    mutex_.reset_after_fork();
    for (std::atomic<std::uint32_t>& call : calls_) call.store(0, std::memory_order_relaxed);
  }

 private:
  void call(unsigned number) {
    if (calls_[number].exchange(1) == 0) futex_wake(&calls_[number], 1);
  }

  Budget* budget_ = nullptr;
  Mutex mutex_;  // guards the looks
  HermitSchedule schedule_;
  RefaultDistances distances_;
  SpeculativeReads reads_;
  std::array<std::atomic<std::uint32_t>, HermitSchedule::kThreadsMax> calls_{};  // futexes; 1: the thread is called
};

}  // namespace hinterland
