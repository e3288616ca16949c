// FaultHandler: room for the pages that it brings in, and which of it the handler makes itself.
#include "paging/serve/fault_handler.hpp"

namespace hinterland {

// Reclaim ahead of need belongs to the background. But taking scattered pages flushes the faulting thread's CPU once
// a page, and from another CPU that is an interrupt, which costs more than the page. A handler that shares the CPU
// with the one thread that faults takes a few pages itself: it has woken the thread already. In signal mode it is
// that thread. (docs/adr/0015-scattered-pages-leave-from-the-same-cpu.md) Writing them back is left to the settler.
bool FaultHandler::reclaims_here() const {
  bool on_its_cpu = core_.faults_by_signal || placement_.makes_way();
  return on_its_cpu && core_.flush_share.high() && core_.devices.all_synchronous();
}

// Unchanged pages leave by one call for many, and are the background's, but where waking it draws the thread away
// (docs/adr/0035-the-reclaimer-attracts-too.md), and the program brings in single pages: runs are worth another CPU.
bool FaultHandler::takes_clean_pages_here() {
  bool may = placement_.makes_way() && core_.parts.feedback && core_.devices.all_synchronous();
  return may && single_pages_ >= kScatteredFrom && !core_.budget.falls_behind() && !placement_.may_wake_reclaimer();
}

void FaultHandler::keep_room(PageIndex served) {
  if (core_.hermit != nullptr) return core_.hermit->charged();
  std::optional<std::size_t> taken = 0;
  if (reclaims_here())
    taken = take_here(served);
  else if (takes_clean_pages_here())
    taken = direct_.reclaim(kCleanPagesTakenHere, served);
  if (!taken) return;
  count(Counter::reclaim_handler_pages, *taken);
  if (*taken != 0)
    core_.flush_share.note_taken_where_used();
  else if (core_.budget.wake_reclaimer())
    placement_.woke_reclaimer();
}

// A handler that makes way, and has the CPU without a fault to serve, is there because the thread sleeps: in a system
// call, or for want of work. Pages that leave now are not waited for. Returns how many messages it read meanwhile.
// Of a program that has not paused for long it is asked now and then: a look costs more than a read that blocks.
int FaultHandler::make_room_at_leisure() {
  if (faults_since_pause_++ > kFaultsWithoutPause && faults_since_pause_ % kLookEvery != 0) return 0;
  while (reclaims_here() && !core_.budget.should_stop() && paused_.load() == 0) {
    if (!core_.kernel.features().look_for_faults) return 0;
    if (int count = core_.kernel.look_for_faults(room_for_messages()); count != 0) return count;
    faults_since_pause_ = 0;
    std::size_t freed = direct_.reclaim(kPagesTakenAtLeisure);
    if (freed == 0) return 0;
    count(Counter::reclaim_handler_pages, freed);
  }
  return 0;
}

// Nothing: what was taken last time is being written back, and that is soon enough.
std::optional<std::size_t> FaultHandler::take_here(PageIndex served) {
  if (core_.budget.falls_behind() || !settler_.ready() || !placement_.may_wake_helper())
    return direct_.reclaim(kPagesTakenHere, served);
  std::optional<std::size_t> taken = direct_.take(kPagesTakenHere, served);
  if (taken && *taken != 0) {
    settler_.call(place_.handler, direct_);
    placement_.woke_helper();
  }
  return taken;
}

// Hermit 4.3: the request goes out before there is room for the page, and reclaim takes the time that the device
// takes. (Hermit lets go of what arrives where no room could be made; here that room is made until it is mapped, so
// I5 holds.) A device that answers at once takes no time.
bool FaultHandler::reads_before_room(std::uint32_t pages, bool at_once) {
  if (core_.hermit == nullptr || at_once) [[likely]]
    return false;
  SpeculativeReads& reads = core_.hermit->speculative_reads();
  if (!reads.next()) return false;
  if (!core_.budget.has_room(pages)) reads.note_failed();
  return true;
}

// Others need not wait for this one's room.
void FaultHandler::make_room(std::uint32_t pages) {
  if (core_.budget.has_room(pages)) return;
  fetcher_->send_requests();
  bringer_.make_room(pages, direct_);
}

}  // namespace hinterland
