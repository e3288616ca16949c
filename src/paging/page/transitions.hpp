// Every change of a page's state: one function each, which does all that belongs to it: the page's word, the budget,
// the policy, the frame, the far copy, the hint map, and waking those who wait.
//
//   Untouched --first_touch, adopt--> Resident
//   Resident  --make_writable, stay, discard_in_place, reuse, renew--> Resident
//             --drop--> Far or Untouched           --found_gone--> Untouched
//             --begin_write_back--> Leaving
//   Leaving   --park--> Parked                     --leave--> Far
//             --drop_zero--> Untouched             --restore--> Resident
//   Parked    --take_back, return_from_frame--> Resident                        --expire--> Far
//   Far       --begin_arrival--> Arriving
//   Arriving  --arrive--> Resident                 --call_off, keep--> Far      --lose--> Lost
//   Untouched, Parked, Far --replace--> Far, Untouched
//   any       --dispose, forget--> Untouched       --move_away, move_resident--> another page
//
// The caller holds the page's busy bit (I1): by try_lock() here or in PageCell, or by Core::lock_waiting(). Each
// function lets go of it, and wakes whoever announced that he waits, unless it says "stays locked". Any thread;
// nothing here allocates or takes a lock that a faulting thread may hold, and what may wait says so.
//
// Faults, hints, evictors and calls about mappings ask for transitions; nobody else changes a page's word. The tests
// of the page machine (page_machine_*_test.cpp) drive these functions through all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "far/device.hpp"
#include "hinterland/policy.h"
#include "paging/page/frames.hpp"
#include "paging/page/page_word.hpp"

namespace hinterland {

struct Core;
class WriteRecheck;

class Transitions {
 public:
  explicit Transitions(Core& core) : core_(core) {}

  // Without waiting: takes the busy bit of a page that is in this state. False when somebody else has it, or the page
  // is in another state.
  bool try_lock(PageIndex page, PageState state, PageWord* word);
  // Nothing changes: `word` is what it was when the page was locked.
  void none(PageIndex page, PageWord word) { let_go(page, word); }

  // --- from Untouched
  // Pages side by side, which were mapped, and charged to the budget before. Dirty: they have no far copy.
  void first_touch(PageIndex first, std::uint32_t count);
  // There is no mapping: stays Untouched, and the charge goes back.
  void no_first_touch(PageIndex first, std::uint32_t count);
  // There before paging began. Not locked: nobody else works on pages yet.
  void adopt(PageIndex page);

  // --- from Far
  // `writable`: how this fetch will map it. Stays locked.
  void begin_arrival(PageIndex page, PageWord word, bool writable);
  // Arriving: to be mapped protected, whatever was expected. Stays locked.
  void expect_no_write(PageIndex page);

  // --- from Arriving; these pages were charged to the budget before
  // Pages side by side, which were mapped: protected, and then clean (I3), or writable, and then dirty.
  void arrive(PageRun run, bool protect, hl_arrival why, std::uint8_t priority, WriteRecheck& recheck);
  // The program changed the mapping by a system call that went past us: what is there counts, or there is nothing.
  void arrive_changed(PageIndex page, bool something_there);
  // Not fetched: Far again, and the charge goes back.
  void call_off(PageRun run);
  // The caller has a copy of the far page: Far again, and "fetched".
  void keep(PageIndex page);
  // I4: its bytes cannot be had (a positive errno). From now on the page raises SIGBUS. Says so on stderr.
  void lose(PageIndex page, int error);

  // --- from Resident
  // I3: dirty, because it can be written from now on without anybody being told. What the kernel said of the
  // protection: 0, or -errno when the mapping is gone.
  int make_writable(PageIndex page, PageWord word);
  // The program dropped it by a system call that went past us: it reads as zeros. `listed`: the policy has it.
  void found_gone(PageIndex page, PageWord word, bool listed);
  // The heap freed it: it stays, dirty, and its bytes need not be kept. Its far copy is the caller's to release.
  void discard_in_place(PageIndex page, PageWord word);
  // The heap has cleared it, and uses it again.
  void reuse(PageIndex page, PageWord word) { let_go(page, word.with_discardable(false)); }
  // The heap uses them again as they are: pages side by side, new to the policy.
  void renew(PageRun run);
  // A victim that cannot be taken: the policy has it again.
  void stay(PageIndex page, PageWord word);
  // Victims (`page`, `word`) that were unmapped: Far where the far copy has their bytes, else Untouched. Returns how
  // many of them were clean.
  template <typename Victims>
  std::size_t drop(const Victims& victims) {
    std::size_t clean = 0, count = 0;
    for (const auto& victim : victims) {
      clean += !victim.word.dirty();
      ++count;
      drop_one(victim.page, victim.word);
    }
    discharge(count);
    return clean;
  }
  // A dirty victim whose bytes are in a frame now. Stays locked.
  void begin_write_back(PageIndex page, PageWord word, std::uint32_t frame);

  // --- a victim in a frame (Leaving, or Resident and clean)
  // All of its bytes are zero: Untouched.
  void drop_zero(PageIndex page, std::uint32_t frame);
  // `far` has the same bytes. `written`: it was dirty, and has just been written there.
  void park(PageIndex page, PageWord word, std::uint32_t frame, far::FarPage far, bool written);
  // The same without a second chance: the frame's bytes are needed no longer.
  void leave(PageIndex page, PageWord word, std::uint32_t frame, far::FarPage far, bool written);
  // It could not be written: Resident and dirty. True when one page more is local until the frame expires. May wait
  // for memory.
  bool restore(PageIndex page, PageWord word, std::uint32_t frame);

  // --- from Parked
  // Touched again: clean from a copy, or, where it will be written, dirty out of the frame. May wait for memory.
  void take_back(PageIndex page, PageWord word, bool writable, std::uint8_t priority);
  // Its far copy is lost: dirty out of the frame. May wait for memory.
  void return_from_frame(PageIndex page, PageWord word) { take_out(page, word, HL_ARRIVAL_RETURNED, 0); }
  // Whether a frame's bytes are needed no longer; the page that is parked there is Far then. It locks the page
  // itself. The ring's mutex is held.
  FrameRing::Decision expire(std::uint32_t index, Frame& frame);

  // --- the program gave the page up, in any state
  // What it holds is released: Untouched, stays locked, so that it can be unmapped before none(). 1 if it was
  // Resident.
  int dispose(PageIndex page, PageWord word);
  // The same, unmapped before.
  void forget(PageIndex page, PageWord word);

  // --- its bytes are others from now on: `next` is Far, as a page that was held for it, or Untouched
  // Not of a resident page, which somebody may be writing to, nor of a lost one. False: nothing is changed.
  bool replace(PageIndex page, PageWord word, PageWord next);

  // --- its bytes have moved to another address, whose page is locked, too, and Untouched
  // Parked, Far and Lost.
  void move_away(PageIndex page, PageIndex target, PageWord word);
  // Resident, side by side. `there`: false when there was nothing to move. Dirty at the target.
  void move_resident(PageRun run, PageIndex target, bool there);

  // --- in a forked child, where nobody else works on pages yet
  // What becomes of the parent's page. Nobody holds it here: who looked at it in the parent (a pin) when the program
  // forked is not there to let go of it. True when it is Resident here.
  bool inherit(PageCell& cell);

 private:
  void let_go(PageIndex page, PageWord next);
  void discharge(std::size_t pages);
  void drop_one(PageIndex page, PageWord word);
  void drop_frame(Frame& frame);
  void take_out(PageIndex page, PageWord word, hl_arrival why, std::uint8_t priority);
  bool give_back_bytes(PageIndex page, std::uint32_t frame);
  int release(PageIndex page, PageWord word);
  void release_far(far::FarPage far);

  Core& core_;
};

}  // namespace hinterland
