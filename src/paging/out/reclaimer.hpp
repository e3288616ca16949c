// Background reclaim: keeps some of the budget free, so that faults need not (Hermit 4.2, Eden 3.3).
//
// One thread as a rule. When pages come in faster than it takes them out, so that half of what it keeps in hand is
// gone, a second one helps until the low watermark is reached again: writing back compresses, copies or sends, and
// that is worth a CPU. The second thread is made when it is first needed (the housekeeper asks).
//
// Pages that are flushed one by one it leaves to the threads that use them, while these take some: from here each
// would be an interrupt on their CPU (docs/adr/0015-scattered-pages-leave-from-the-same-cpu.md).
#pragma once

#include <atomic>
#include <memory>

#include "paging/out/evictor.hpp"
#include "paging/page/core.hpp"
#include "paging/place/companions.hpp"

namespace hinterland {

class Reclaimer {
 public:
  // Borrowed for the life of the process. `wake_housekeeper`: as soon as wants_help() became true.
  Reclaimer(Core& core, Evictor& evictor, Companions& companions, void (*wake_housekeeper)())
      : core_(core), evictor_(evictor), companions_(companions), wake_housekeeper_(wake_housekeeper) {}

  // The thread's body: sleeps until the free part of the budget falls below the low watermark, then reclaims up to
  // the high one.
  void run();

  // --- the housekeeper, under the pager's map lock: no fork meanwhile
  bool wants_help() const { return !helper_tried_ && may_have_help() && wants_help_.load(std::memory_order_relaxed); }
  void start_helper();

  // --- fork: the second thread's evictor, once there is one
  void lock_helper();
  void unlock_helper();

 private:
  bool may_have_help() const { return core_.parts.second_reclaimer && core_.parts.feedback; }
  bool reclaim_until_stop();
  void help();
  bool reclaim(Evictor& evictor, std::size_t wanted);
  void call_helper();

  Core& core_;
  Evictor& evictor_;
  Companions& companions_;
  void (*wake_housekeeper_)();
  // What FlushShare::left_to_users() has seen: the first thread's, and the second's.
  std::uint32_t taken_where_used_ = 0, helper_taken_where_used_ = 0;
  std::unique_ptr<Evictor> helpers_evictor_;  // written before helper_started_
  std::atomic<bool> wants_help_{false};
  bool helper_tried_ = false;  // the housekeeper's: once, and one message when it fails
  std::atomic<bool> helper_started_{false};
  std::atomic<std::uint32_t> calls_{0};  // futex of the second thread; odd: it is wanted
};

}  // namespace hinterland
