// What all parts of the pager share: one process's window, words, frames, budget, policy and devices.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/parts.hpp"
#include "base/stats.hpp"
#include "far/devices.hpp"
#include "kernel/kernel.hpp"
#include "paging/page/budget.hpp"
#include "paging/page/fault_observer.hpp"
#include "paging/page/frames.hpp"
#include "paging/page/hint_map.hpp"
#include "paging/page/page_marks.hpp"
#include "paging/page/page_table.hpp"
#include "paging/page/pinned_pages.hpp"
#include "paging/page/policy_host.hpp"
#include "paging/page/unawaited_fetches.hpp"
#include "paging/page/window.hpp"
#include "paging/page/write_forecast.hpp"

namespace hinterland {

// How often a page that was unmapped but kept in a frame is touched again before the frame is needed: decides whether
// clean pages are worth a frame. Relaxed counters, halved now and then so that they follow the program.
class SecondChance {
 public:
  bool enabled = false;
  bool adapts = true;  // else clean pages always get a frame, whatever becomes of them
  // Else the program's device answers at once: what comes out of a frame costs what comes from there, and getting it
  // into the frame comes on top. That the page is in use its policy learns from the fault (ADR 0025).
  bool saves_a_fetch = true;
  void note_parked() {
    if (parked_.fetch_add(1, std::memory_order_relaxed) < 4096) return;
    parked_.store(2048, std::memory_order_relaxed);
    hits_.store(hits_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }
  void note_hit() { hits_.fetch_add(1, std::memory_order_relaxed); }
  // One in eight: a hit saves a fetch (3 us from RAM, tens from a network), a frame costs about 0.8 us (the floor).
  bool pays() const { return pays(saves_a_fetch); }
  // For a page for which it is otherwise than for the program's device.
  bool pays(bool saves) const {
    if (!adapts) return true;
    return saves && hits_.load(std::memory_order_relaxed) * 8 > parked_.load(std::memory_order_relaxed) + 64;
  }

 private:
  std::atomic<std::uint32_t> parked_{0};
  std::atomic<std::uint32_t> hits_{0};
};

// How many flushes of the program's CPUs a page costs that leaves: one for many pages where they are unmapped in one
// call or lie side by side, one each where changed pages lie scattered. Relaxed: it only steers.
class FlushShare {
 public:
  void note(std::size_t flushes, std::size_t pages) {
    if (pages == 0 || fixed_) return;
    int share = static_cast<int>(std::min(flushes, pages) * kWhole / pages);
    int known = share_.load(std::memory_order_relaxed);
    share_.store(known + (share - known) / 8, std::memory_order_relaxed);
  }
  // More than one for four pages.
  bool high() const { return share_.load(std::memory_order_relaxed) > kWhole / 4; }
  void stay_low() { fixed_ = true; }

  // Who faults or hints has taken pages itself, on the CPU that used them.
  void note_taken_where_used() { taken_where_used_.fetch_add(1, std::memory_order_relaxed); }
  // Scattered pages, which such threads have gone on to take since this was last asked: nobody else need do it, from
  // another CPU. `seen`: the asker's, for the next time.
  bool left_to_users(std::uint32_t* seen) const {
    std::uint32_t before = std::exchange(*seen, taken_where_used_.load(std::memory_order_relaxed));
    return *seen != before && high();
  }

 private:
  static constexpr int kWhole = 1024;
  std::atomic<int> share_{0};
  std::atomic<std::uint32_t> taken_where_used_{0};
  bool fixed_ = false;
};

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
  Budget budget;
  PolicyHost policy;
  std::atomic<FaultObserver*> observer{nullptr};  // of hinterland trace; comes and goes while the program runs
  Parts parts;                                    // what is left out is false
  bool faults_by_signal = false;                  // served by the threads that have them (signal_faults.hpp)
  bool take_by_move = false;  // dirty pages are taken with MOVE; else they are protected and copied
  std::uint32_t read_ahead_pages_max = 0;
  std::atomic<bool> managed{false};  // paging has begun; before, the kernel alone has the pages
  // Held while a page's protection matters: taking a page that is not writable means reading and then unmapping it,
  // and nobody may make it writable in between.
  Mutex protection_mutex;

  SecondChance second_chance;
  FlushShare flush_share;
  WriteForecast forecast;
  UnawaitedFetches* unawaited = nullptr;            // borrowed; nullptr before hints are served
  std::atomic<std::uint32_t> refusals_reported{0};  // on stderr, once a device: a bit each
  Mutex loss_mutex;                                 // who finds it held waits: the program may die of what comes next
  std::uint32_t losses_reported = 0;                // guarded by loss_mutex; a bit a device

  // At most so many pages are read ahead of this one.
  std::uint32_t read_ahead_max(PageIndex page) const { return policy.read_ahead_max(page, read_ahead_pages_max); }

  std::uintptr_t address_of(PageIndex page) const { return window.address_of(page); }
  void* memory_of(PageIndex page) const { return reinterpret_cast<void*>(window.address_of(page)); }

  // Lets go of a page and wakes whoever came while it was busy.
  void unlock(PageIndex page, PageWord next) {
    hint_map.note(page, next);
    if (pages[page].unlock(next)) kernel.wake(address_of(page), kPageSize);
  }
  // A thread waits in a fault for a page that is busy: it may be one that only a poll would bring.
  void page_is_waited_for();
  // Takes the busy bit, waiting for the mover that holds it. Not for the fault handler.
  PageWord lock_waiting(PageIndex page);

  // The far copy is no longer needed (the page was written to, or freed).
  void release_far(far::FarPage page) { devices.release({&page, 1}); }
  // A device is gone: says so, once, with the number of pages that are lost with it.
  void report_loss(std::uint32_t device);
  // Puts a frame's bytes back where the program sees them, writable. The page's busy bit is held. Keeps the count of
  // local pages right: true when one more is local now (a copy; the frame's page is dropped later). Waits for memory
  // as long as it takes: the bytes are nowhere else.
  bool give_back(PageIndex page, std::uint32_t frame);

  // Whether a frame's bytes are needed no longer; the page that is parked there is far from now on. The ring's mutex
  // is held.
  FrameRing::Decision end_second_chance(std::uint32_t index, Frame& frame);
};

}  // namespace hinterland
