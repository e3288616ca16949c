// What all parts of the pager share: one process's window, words, frames, budget, policy and devices.
#pragma once

#include <atomic>
#include <memory>

#include "base/parts.hpp"
#include "base/stats.hpp"
#include "far/devices.hpp"
#include "kernel/kernel.hpp"
#include "paging/page/budget.hpp"
#include "paging/page/fault_observer.hpp"
#include "paging/page/flush_share.hpp"
#include "paging/page/frames.hpp"
#include "paging/page/hermit.hpp"
#include "paging/page/hint_map.hpp"
#include "paging/page/ledger.hpp"
#include "paging/page/page_marks.hpp"
#include "paging/page/page_table.hpp"
#include "paging/page/pinned_pages.hpp"
#include "paging/page/policy_host.hpp"
#include "paging/page/second_chance.hpp"
#include "paging/page/transitions.hpp"
#include "paging/page/unawaited_fetches.hpp"
#include "paging/page/window.hpp"
#include "paging/page/write_forecast.hpp"

namespace hinterland {

struct Core {
  Core(Kernel& kernel_in, std::unique_ptr<far::Device> device, std::string url = {})
      : kernel(kernel_in), devices(std::move(device), std::move(url)) {}

  Kernel& kernel;
  far::Devices devices;
  Window window;  // its free ranges are guarded by the pager's map lock; base and size never change
  PageTable pages;
  PinnedPages pinned;
  PageMarks marks;
  HintMap hint_map;
  FrameRing frames;
  Budget budget;  // of pages
  Ledger ledger;  // of all local memory
  PolicyHost policy;
  Transitions transitions{*this};
  std::atomic<FaultObserver*> observer{nullptr};  // of hinterland trace; comes and goes while the program runs
  Parts parts;                                    // what is left out is false
  bool faults_by_signal = false;                  // served by the threads that have them (signal_faults.hpp)
  bool take_by_move = false;  // dirty pages are taken with MOVE; else they are protected and copied
  std::uint32_t read_ahead_pages_max = 0;
  std::atomic<bool> managed{false};  // paging has begun; before, the kernel alone has the pages
  // Held while a page's mapping matters: a page that is not writable is taken by changing its mapping for a moment,
  // or by reading and then unmapping it. Whoever changes the protection of a mapping, or puts another in its place,
  // has this lock meanwhile.
  Mutex protection_mutex;

  SecondChance second_chance;
  FlushShare flush_share;
  std::unique_ptr<Hermit> hermit;  // nullptr: reclaim follows our own feedback
  WriteForecast forecast;
  UnawaitedFetches* unawaited = nullptr;            // borrowed; nullptr before hints are served
  std::atomic<std::uint32_t> refusals_reported{0};  // on stderr, once a device: a bit each
  Mutex loss_mutex;                                 // who finds it held waits: the program may die of what comes next
  std::uint32_t losses_reported = 0;                // guarded by loss_mutex; a bit a device

  // At most so many pages are read ahead of this one.
  std::uint32_t read_ahead_max(PageIndex page) const { return policy.read_ahead_max(page, read_ahead_pages_max); }

  std::uintptr_t address_of(PageIndex page) const { return window.address_of(page); }
  void* memory_of(PageIndex page) const { return reinterpret_cast<void*>(window.address_of(page)); }

  // More may be local than is to be, though nobody has faulted.
  void ask_for_room() {
    if (hermit != nullptr)
      hermit->charged();
    else
      budget.wake_reclaimer();
  }

  // A thread waits in a fault for a page that is busy: it may be one that only a poll would bring.
  void page_is_waited_for();
  // Takes the busy bit, waiting for the mover that holds it. Not for the fault handler. Who has it lets go by one of
  // the transitions.
  PageWord lock_waiting(PageIndex page);

  // A device is gone: says so, once, with the number of pages that are lost with it.
  void report_loss(std::uint32_t device);
};

}  // namespace hinterland
