#include "paging/page/transitions.hpp"

#include <cerrno>
#include <ctime>

#include "base/log.hpp"
#include "paging/page/core.hpp"

namespace hinterland {

bool Transitions::try_lock(PageIndex page, PageState state, PageWord* word) {
  if (PageWord seen = core_.pages[page].load(); seen.busy() || seen.state() != state) return false;
  core_.pages.note_used(page);
  // Looked up again: a page that was never used has no cell of its own before.
  if (!core_.pages[page].try_lock(word)) return false;
  if (word->state() == state) return true;
  none(page, *word);
  return false;
}

// Whoever came while the page was busy is woken.
void Transitions::let_go(PageIndex page, PageWord next) {
  core_.hint_map.note(page, next);
  if (core_.pages[page].unlock(next)) core_.kernel.wake(core_.address_of(page), kPageSize);
}

void Transitions::discharge(std::size_t pages) { core_.budget.subtract(static_cast<std::int64_t>(pages)); }

void Transitions::release_far(far::FarPage far) { core_.devices.release({&far, 1}); }

// --- from Untouched

void Transitions::first_touch(PageIndex first, std::uint32_t count) {
  core_.policy.arrived(first, count, HL_ARRIVAL_FIRST_TOUCH);
  for (std::uint32_t i = 0; i < count; ++i) let_go(first + i, PageWord{}.resident_dirty());
}

void Transitions::no_first_touch(PageIndex first, std::uint32_t count) {
  discharge(count);
  for (std::uint32_t i = 0; i < count; ++i) let_go(first + i, PageWord::untouched());
}

void Transitions::adopt(PageIndex page) {
  core_.pages.note_used(page);
  core_.pages[page].reset(PageWord{}.resident_dirty());
  core_.policy.arrived(page, 1, HL_ARRIVAL_FIRST_TOUCH);
  core_.budget.add(1);
}

// --- from Far and Arriving

void Transitions::begin_arrival(PageIndex page, PageWord word, bool writable) {
  if (core_.hermit != nullptr) [[unlikely]]
    core_.hermit->came(page);
  core_.pages[page].set_locked(word.arriving().with_writable(writable));
}

void Transitions::expect_no_write(PageIndex page) {
  core_.pages[page].set_locked(core_.pages[page].load().with_writable(false));
}

void Transitions::arrive(PageRun run, bool protect, hl_arrival why, std::uint8_t priority, WriteRecheck& recheck) {
  core_.policy.arrived(run.first, run.count, why, priority);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    PageIndex page = run.first + i;
    PageWord word = core_.pages[page].load();
    if (protect) {
      let_go(page, word.resident_clean(word.far_page()));
      continue;
    }
    release_far(word.far_page());
    bool expects = recheck.goes_on_expecting() && word.often_written();
    let_go(page, word.resident_dirty().with_often_written(expects));
  }
}

void Transitions::arrive_changed(PageIndex page, bool something_there) {
  PageWord word = core_.pages[page].load();
  release_far(word.far_page());
  if (something_there)
    core_.policy.arrived(page, 1, HL_ARRIVAL_FAULT);
  else
    discharge(1);
  let_go(page, something_there ? word.resident_dirty() : PageWord::untouched());
}

void Transitions::call_off(PageRun run) {
  discharge(run.count);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    PageWord word = core_.pages[run.first + i].load();
    let_go(run.first + i, PageWord{}.far(word.far_page()).with_often_written(word.often_written()));
  }
}

void Transitions::keep(PageIndex page) {
  PageWord word = core_.pages[page].load();
  discharge(1);
  let_go(page, PageWord{}.far(word.far_page()).with_often_written(word.often_written()).with_fetched(true));
}

void Transitions::lose(PageIndex page, int error) {
  count(Counter::device_errors);
  count(Counter::pages_lost);
  discharge(1);
  far::FarPage far = core_.pages[page].load().far_page();
  if (core_.devices.lost(far.device()) != 0)
    core_.report_loss(far.device());
  else
    log::error("%s", Error::make(error, "page %p cannot be had from %s; touching it raises SIGBUS",
                                 core_.memory_of(page), core_.devices.info(far.device()).url.c_str())
                         .what());
  core_.kernel.poison(core_.address_of(page), kPageSize);
  release_far(far);  // nobody will ask for it again
  let_go(page, PageWord::lost());
  core_.kernel.wake(core_.address_of(page), kPageSize);
}

// --- from Resident

int Transitions::make_writable(PageIndex page, PageWord word) {
  if (word.has_far()) release_far(word.far_page());
  int error = core_.kernel.write_protect(core_.address_of(page), kPageSize, false);
  core_.policy.used(page, HL_ACCESS_WRITE);
  let_go(page, word.resident_dirty().with_often_written(core_.forecast.learns()));
  core_.forecast.note_written(page);
  return error;
}

void Transitions::found_gone(PageIndex page, PageWord word, bool listed) {
  if (word.has_far()) release_far(word.far_page());
  if (listed) core_.policy.departed(page, 1);
  discharge(1);
  let_go(page, PageWord::untouched());
}

void Transitions::discard_in_place(PageIndex page, PageWord word) {
  // So that the heap can clear it without a fault (reuse()).
  if (word.has_far()) core_.kernel.write_protect(core_.address_of(page), kPageSize, false);
  let_go(page, word.resident_dirty().with_discardable(true));
}

void Transitions::renew(PageRun run) {
  core_.policy.departed(run.first, run.count);
  core_.policy.arrived(run.first, run.count, HL_ARRIVAL_FIRST_TOUCH);
  for (std::uint32_t i = 0; i < run.count; ++i) reuse(run.first + i, core_.pages[run.first + i].load().unlocked());
}

void Transitions::stay(PageIndex page, PageWord word) {
  core_.policy.arrived(page, 1, HL_ARRIVAL_RETURNED);
  let_go(page, word);
}

void Transitions::drop_one(PageIndex page, PageWord word) {
  if (core_.hermit != nullptr) [[unlikely]]
    core_.hermit->left(page);
  if (!word.dirty()) core_.forecast.note_left_clean(page);
  // I3: a clean page equals its far copy; one that the heap freed has nothing worth keeping.
  bool keep = word.has_far() && !word.discardable();
  if (word.has_far() && !keep) release_far(word.far_page());
  let_go(page, keep ? word.far(word.far_page()).with_often_written(false) : PageWord::untouched());
}

void Transitions::begin_write_back(PageIndex page, PageWord word, std::uint32_t frame) {
  core_.pages[page].set_locked(word.leaving(frame));
}

// --- in a frame

void Transitions::drop_frame(Frame& frame) { core_.frames.drop(frame); }

void Transitions::drop_zero(PageIndex page, std::uint32_t frame) {
  drop_frame(core_.frames[frame]);
  let_go(page, PageWord::untouched());
}

void Transitions::park(PageIndex page, PageWord word, std::uint32_t frame, far::FarPage far, bool written) {
  if (core_.hermit != nullptr) [[unlikely]]
    core_.hermit->left(page);
  Frame& held = core_.frames[frame];
  held.page.store(page, std::memory_order_relaxed);
  held.far = far;
  held.state.store(FrameState::parked, std::memory_order_release);  // pairs with the look in expire()
  core_.second_chance.note_parked();
  if (!written) core_.forecast.note_left_clean(page);
  let_go(page, written ? word.parked(frame) : word.parked(frame).with_often_written(false));
}

void Transitions::leave(PageIndex page, PageWord word, std::uint32_t frame, far::FarPage far, bool written) {
  if (core_.hermit != nullptr) [[unlikely]]
    core_.hermit->left(page);
  drop_frame(core_.frames[frame]);
  if (!written) core_.forecast.note_left_clean(page);
  PageWord next = word.far(far);
  let_go(page, written ? next : next.with_often_written(false));
}

bool Transitions::restore(PageIndex page, PageWord word, std::uint32_t frame) {
  bool one_more = give_back_bytes(page, frame);
  core_.policy.arrived(page, 1, HL_ARRIVAL_RETURNED);
  let_go(page, word.resident_dirty());
  return one_more;
}

void Transitions::take_back(PageIndex page, PageWord word, bool writable, std::uint8_t priority) {
  core_.second_chance.note_hit();
  Frame& frame = core_.frames[word.frame()];
  // A page that is only read is mapped protected from a copy, in one step, and stays clean.
  std::int64_t copied = -ENOTSUP;
  if (!writable && core_.kernel.features().write_protect)
    copied = core_.kernel.copy(core_.address_of(page), core_.frames.memory_of(word.frame()), kPageSize, true);
  if (copied != static_cast<std::int64_t>(kPageSize)) return take_out(page, word, HL_ARRIVAL_REFAULT, priority);
  core_.policy.arrived(page, 1, HL_ARRIVAL_REFAULT, priority);
  core_.budget.add(1);
  far::FarPage far = frame.far;  // the frame is another's as soon as it is dropped
  drop_frame(frame);
  let_go(page, word.resident_clean(far));
}

void Transitions::take_out(PageIndex page, PageWord word, hl_arrival why, std::uint8_t priority) {
  far::FarPage far = core_.frames[word.frame()].far;
  core_.policy.arrived(page, 1, why, priority);
  give_back_bytes(page, word.frame());
  release_far(far);
  let_go(page, word.resident_dirty());
}

// Puts a frame's bytes where the program sees them, writable. True when one page more is local now (a copy; the
// frame's own goes later). Waits for memory as long as it takes: the bytes are nowhere else.
bool Transitions::give_back_bytes(PageIndex page, std::uint32_t frame) {
  constexpr auto kWhole = static_cast<std::int64_t>(kPageSize);
  if (core_.take_by_move &&
      core_.kernel.move(core_.address_of(page), core_.frames.address_of(frame), kPageSize) == kWhole) {
    core_.frames[frame].state.store(FrameState::empty, std::memory_order_release);  // pairs with the look in expire()
    return false;
  }
  // No MOVE, or the frame is shared since a fork: a copy does as well.
  for (;;) {
    std::int64_t done = core_.kernel.copy(core_.address_of(page), core_.frames.memory_of(frame), kPageSize, false);
    if (done == kWhole || done == -EEXIST || done == -ENOENT) break;
    timespec nap{0, 1'000'000};  // the kernel is out of memory: reclaim elsewhere may help
    nanosleep(&nap, nullptr);
  }
  core_.budget.add(1);
  drop_frame(core_.frames[frame]);
  return true;
}

FrameRing::Decision Transitions::expire(std::uint32_t index, Frame& frame) {
  using Decision = FrameRing::Decision;
  switch (frame.state.load(std::memory_order_acquire)) {  // pairs with the release stores of the movers
    case FrameState::empty:
    case FrameState::leaving:
      return Decision::pass;
    case FrameState::dropped:
      return Decision::discard;
    case FrameState::parked:
      break;
  }
  PageWord word;
  PageIndex page = frame.page.load(std::memory_order_relaxed);
  if (!core_.pages[page].try_lock(&word)) return Decision::pass;  // on its way back at this moment
  bool is_its_frame = word.state() == PageState::parked && word.frame() == index;
  if (!is_its_frame || core_.devices.lost(frame.far.device()) != 0) {  // of a lost device it is the only copy left
    none(page, word);
    return Decision::pass;
  }
  frame.state.store(FrameState::dropped, std::memory_order_relaxed);  // the ring's mutex is held
  let_go(page, word.far(frame.far));
  return Decision::discard;
}

// --- given up, or moved

int Transitions::release(PageIndex page, PageWord word) {
  switch (word.state()) {
    case PageState::resident:
      if (word.has_far()) release_far(word.far_page());
      core_.policy.departed(page, 1);
      discharge(1);
      return 1;
    case PageState::parked: {
      Frame& frame = core_.frames[word.frame()];
      release_far(frame.far);
      drop_frame(frame);
      return 0;
    }
    case PageState::far:
      release_far(word.far_page());
      return 0;
    case PageState::untouched:
    case PageState::lost:
      return 0;
    case PageState::leaving:
    case PageState::arriving:
      break;
  }
  HL_CHECK(false && "a page on its way is busy");
  return 0;
}

int Transitions::dispose(PageIndex page, PageWord word) {
  int resident = release(page, word);
  core_.pages[page].set_locked(PageWord::untouched());
  return resident;
}

void Transitions::forget(PageIndex page, PageWord word) {
  release(page, word);
  let_go(page, PageWord::untouched());
}

bool Transitions::replace(PageIndex page, PageWord word, PageWord next) {
  const bool can_be =
      word.state() == PageState::untouched || word.state() == PageState::parked || word.state() == PageState::far;
  if (can_be) release(page, word);
  let_go(page, can_be ? next : word);
  return can_be;
}

void Transitions::move_away(PageIndex page, PageIndex target, PageWord word) {
  if (word.state() == PageState::parked) core_.frames[word.frame()].page.store(target, std::memory_order_relaxed);
  if (word.state() == PageState::lost) {
    core_.kernel.poison(core_.address_of(target), kPageSize);  // I4 there, too
    iovec here{core_.memory_of(page), kPageSize};
    core_.kernel.discard({&here, 1});  // but here no more, where the place stays (MREMAP_DONTUNMAP)
  }
  let_go(target, word);
  let_go(page, PageWord::untouched());
}

void Transitions::move_resident(PageRun run, PageIndex target, bool there) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    PageWord word = core_.pages[run.first + i].load();
    if (word.has_far()) release_far(word.far_page());  // it arrives unprotected
    core_.policy.departed(run.first + i, 1);
    if (there)
      core_.policy.arrived(target + i, 1, HL_ARRIVAL_FIRST_TOUCH);
    else
      discharge(1);
    let_go(target + i, there ? word.resident_dirty() : PageWord::untouched());
    let_go(run.first + i, PageWord::untouched());
  }
}

bool Transitions::inherit(PageCell& cell) {
  PageWord word = cell.load();
  // Parked pages have their far copy; the frames themselves stay behind with the parent.
  if (word.state() == PageState::parked) word = word.far(core_.frames[word.frame()].far);
  if (word.state() != PageState::resident) {
    cell.reset(word.unlocked());
    return false;
  }
  // The child's pages have lost their protection, so none is clean; their far copies remain the parent's.
  cell.reset(word.resident_dirty().with_discardable(word.discardable()));
  return true;
}

}  // namespace hinterland
