// Calls that lock pages without map_mutex: the heap's commit and decommit, and holds. A fork waits for those under
// way and keeps others out: between a page's release and its new word the child would take over a far page that is
// gone, or a word that stays busy for ever.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace hinterland {

class HeapCalls {
 public:
  // One call. Waits while a fork is under way; not for the thread that forks.
  class Call {
   public:
    explicit Call(HeapCalls& calls) : calls_(calls) { calls_.enter(); }
    ~Call() { calls_.inside_.fetch_sub(1, std::memory_order_release); }  // pairs with close()
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    HeapCalls& calls_;
  };

  // The caller holds none of the pager's locks: a call under way may need them.
  void close() {
    closed_.store(true);  // seq_cst, as in enter(): one of the two sees the other
    while (inside_.load() != 0) sched_yield();
  }
  void open() { closed_.store(false); }
  // Whoever was on the way in does not exist in a forked child.
  void after_fork_in_child() {
    inside_.store(0);
    open();
  }

 private:
  void enter() {
    for (;;) {
      inside_.fetch_add(1);
      if (!closed_.load()) return;
      inside_.fetch_sub(1);
      sched_yield();
    }
  }

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace hinterland
