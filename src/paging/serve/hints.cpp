// A hint: which pages, which of them are missing, fetched in as few requests as possible.
#include "paging/serve/hints.hpp"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "paging/page/undisturbed.hpp"

namespace hinterland {
namespace {

// Signal handlers' stacks may be as small as 8 KiB, and making room takes more.
bool on_signal_stack() {
  stack_t now{};
  return signal_handlers::possible() && sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

constexpr std::uint64_t kNoLaneNs = 1'000'000'000;  // then it is tried again

std::uint32_t at_most(std::uint64_t pages, std::uint64_t most) {
  return static_cast<std::uint32_t>(std::min(pages, most));
}

}  // namespace

void Hints::serve(const Hint& hint, Evictor& direct) {
  note_local(hint);
  Wanted wanted = pages_of(hint);
  if (wanted.now.count == 0) return;
  listen();
  count(Counter::hint_calls);
  if (all_there(hint, wanted) || on_signal_stack() || is_only_noted(hint, wanted)) return;
  Undisturbed undisturbed(Undisturbed::Signals::blocked_where_handled);
  Lane& lane = take_lane();
  undisturbed.make_sure();
  start(lane, wanted, direct);
  lane.finish(wanted.now);
  leave(lane);
  wait_for(wanted.now);
}

bool Hints::begin(const Hint& hint, Evictor& direct) {
  note_local(hint);
  Wanted wanted = pages_of(hint);
  if (wanted.now.count == 0) return false;
  listen();
  count(Counter::hint_calls);
  if (all_there(hint, wanted) || on_signal_stack() || is_only_noted(hint, wanted)) return false;
  Undisturbed undisturbed(Undisturbed::Signals::blocked_where_handled);
  Lane& lane = take_lane();
  undisturbed.make_sure();
  start(lane, wanted, direct);
  leave(lane);
  return is_on_its_way(wanted.now);
}

// Stacks, files, shared memory: the map covers them, too, and the same hint would ask again and again. Programs look
// at the first and the last page of a hint.
void Hints::note_local(const Hint& hint) {
  const Window& window = core_.window;
  if (!window.covers_all_addresses()) return;
  for (std::uintptr_t address : {hint.address, hint.address + hint.size - (hint.size != 0)})
    if (window.has_place(address) && !window.holds(address)) core_.hint_map.note_local(window.index_of(address));
}

// From the program's first hint on.
void Hints::listen() {
  if (core_.hint_map.active()) return;
  signal_handlers::look();
  core_.kernel.expect_unwaited_copies();
  core_.hint_map.activate();
  // What is there already; else the first hint on each of these pages would be a call that finds that out. A page
  // that moves meanwhile is noted by its mover or wrongly here, which is harmless (hint_map.hpp).
  core_.pages.for_all_used([this](PageIndex page, PageCell& cell) { core_.hint_map.note(page, cell.load()); });
}

bool Hints::is_on_its_way(const Hint& hint) const { return is_on_its_way(pages_of(hint).now); }

bool Hints::is_on_its_way(PageRun run) const {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    PageWord word = core_.pages[run.first + i].load();
    if (word.busy() && word.state() == PageState::arriving) return true;
  }
  return false;
}

// The part of the hint that can be far, and no more of it than the budget can hold beside what is in use: a
// hint that pushes out what it brought is worse than none.
Hints::Wanted Hints::pages_of(const Hint& hint) const {
  const Window& window = core_.window;
  Wanted wanted{{}, {}, hint.write, hint.priority};
  if (!window.holds(hint.address)) return wanted;
  auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(core_.budget.limit() / 4, 1));
  std::uint64_t to_end = bytes_of_pages(window.places()) - (hint.address - window.origin());
  PageIndex first = window.index_of(hint.address);
  PageIndex last = window.index_of(hint.address + std::clamp<std::uint64_t>(hint.size, 1, to_end) - 1);
  wanted.now = {first, at_most(last.value - first.value + 1, most)};
  wanted.all = wanted.now;
  // Read-ahead must not push out what it brings, either; a program that says so may go beyond what faults do.
  auto room = std::min<std::uint64_t>(most - wanted.now.count, std::max<std::uint64_t>(most / 4, 1));
  // With the page itself one run: one request, one mapping call.
  if (hint.read_ahead_limited)
    room = std::min<std::uint64_t>(room, std::max(core_.read_ahead_max(first), wanted.now.count) - wanted.now.count);
  std::uint64_t ahead = at_most(static_cast<std::uint64_t>(std::abs(std::int64_t{hint.read_ahead})), room);
  if (hint.read_ahead > 0) {
    wanted.all.count += at_most(ahead, window.places() - wanted.now.end().value);
  } else {
    std::uint32_t before = at_most(ahead, first.value);
    wanted.all = {{first.value - before}, wanted.now.count + before};
  }
  return wanted;
}

// Without a lock: the map may miss what is there already, because a fault brought it before the first hint, and pages
// that were never touched are the fault's business. So are busy ones, but for those that we may have to wait for.
bool Hints::all_there(const Hint& hint, const Wanted& wanted) {
  std::uint64_t there = 0;
  for (std::uint32_t i = 0; i < wanted.now.count; ++i) {
    PageIndex page = wanted.now.first + i;
    PageWord word = core_.pages[page].load();
    if (word.busy() && word.state() == PageState::arriving && active_.load() != 0) return false;
    if (word.busy() || word.state() == PageState::untouched || word.state() == PageState::lost) continue;
    if (word.state() != PageState::resident || (wanted.write && !word.dirty())) return false;
    core_.hint_map.note(page, word);
    ++there;
  }
  count(Counter::hint_pages_there, there);
  if (there != 0) tell_of_found(hint, wanted);
  return true;
}

Hints::Lane& Hints::take_lane() {
  // Threads keep to their lanes where they can: the thread's block lies on pages of its own.
  std::size_t own =
      (reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) >> kPageShift) * 0x9E3779B1u % kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    Lane& lane = lanes_[(own + i) % kLanes];
    if (!lane.mutex.try_lock()) continue;
    if (!core_.devices.all_synchronous()) active_.fetch_or(bit_of(lane));
    return lane;
  }
  lanes_[own].mutex.lock();
  if (!core_.devices.all_synchronous()) active_.fetch_or(bit_of(lanes_[own]));
  return lanes_[own];
}

void Hints::leave(Lane& lane) {
  bool done = lane.fetcher == nullptr || lane.fetcher->in_flight() == 0;
  if (done && !core_.devices.all_synchronous()) active_.fetch_and(~bit_of(lane));
  lane.mutex.unlock();
}

// Making a lane may mean waiting for a server's answer: where that is in vain, not each hint should. And a device
// that is given up has its own message.
bool Hints::open(Lane& lane) {
  if (lane.fetcher != nullptr) return true;
  if (core_.devices.all_lost() || now_ns() < no_lane_until_ns_.load()) return false;
  auto made = Fetcher::create(core_, Fetcher::For::hints);
  if (made) {
    lane.fetcher = std::move(*made);
    return true;
  }
  no_lane_until_ns_.store(now_ns() + kNoLaneNs);
  if (!core_.devices.some_lost() && !failure_reported_.exchange(true))
    log::warning("hints cannot fetch for now, so that faults have to: %s", made.error().what());
  return false;
}

void Hints::start(Lane& lane, const Wanted& wanted, Evictor& direct) {
  if (lane.fetcher != nullptr && lane.fetcher->in_flight() != 0) lane.fetcher->progress();
  for (std::uint32_t at = 0; at < wanted.all.count;) at += bring_one_run(lane, wanted, wanted.all.first + at, direct);
  if (core_.budget.should_start()) keep_room(direct);
}

// As the fault handler's keep_room(): pages that are flushed one by one leave from the CPU that uses them, which is
// this one. While another thread does the same there is nothing to do.
void Hints::keep_room(Evictor& direct) {
  if (core_.hermit != nullptr) return core_.hermit->charged();
  bool here = core_.flush_share.high() && core_.devices.all_synchronous();
  if (here) {
    if (!direct.mutex().try_lock()) return;
    direct.mutex().unlock();
  }
  std::size_t freed = here ? direct.reclaim(kPagesTakenHere) : 0;
  count(Counter::reclaim_direct_pages, freed);
  if (freed != 0)
    core_.flush_share.note_taken_where_used();
  else
    core_.budget.wake_reclaimer();
}

void Hints::Lane::finish(PageRun run) {
  while (fetcher != nullptr && fetcher->is_fetching(run))
    if (!fetcher->progress()) fetcher->wait(1'000'000'000);
}

void Hints::Lane::finish_all() {
  while (fetcher != nullptr && fetcher->in_flight() != 0)
    if (!fetcher->progress()) fetcher->wait(1'000'000'000);
}

// What others began to fetch. (The fault handler's fetches it sees to itself: they are in none of the lanes.)
void Hints::wait_for(PageRun run) {
  for (Lane& lane : lanes_) {
    if ((active_.load() & bit_of(lane)) == 0) continue;
    if (!is_on_its_way(run)) return;
    lane.mutex.lock();
    lane.finish(run);
    leave(lane);
  }
}

bool Hints::poll() {
  std::uint32_t active = active_.load();
  if (active == 0) return false;
  bool any = false;
  for (Lane& lane : lanes_) {
    // Who holds it gathers for himself.
    if ((active & bit_of(lane)) == 0 || !lane.mutex.try_lock()) continue;
    if (lane.fetcher != nullptr) any |= lane.fetcher->progress();
    leave(lane);
  }
  return any;
}

void Hints::wait(std::uint64_t timeout_ns) {
  std::array<pollfd, kLanes * far::kDevicesMax> waits;
  nfds_t count = 0;
  std::uint32_t active = active_.load();
  if (active == 0) return;
  for (Lane& lane : lanes_) {
    if ((active & bit_of(lane)) == 0) continue;
    Undisturbed undisturbed;
    if (!lane.mutex.try_lock()) {  // in somebody's hands, who will leave it in a moment
      timeout_ns = std::min<std::uint64_t>(timeout_ns, 1'000'000);
      continue;
    }
    if (lane.fetcher != nullptr && lane.fetcher->in_flight() != 0)
      count += lane.fetcher->events(std::span(waits).subspan(count).first<far::kDevicesMax>());
    leave(lane);
  }
  timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  ppoll(waits.data(), count, &timeout, nullptr);
}

void Hints::wake_gatherer() {
  if (active_.load() == 0) return;
  wanted_.fetch_add(1);  // seq_cst, as what the gatherer does: either it sees this, or we that it sleeps
  if (gatherer_sleeps_.load()) futex_wake(&wanted_, 1);
}

void Hints::run_gatherer() {
  InsideRuntime inside;
  note_runtime_thread();
  for (std::uint32_t seen = 0;;) {
    gatherer_sleeps_.store(true);
    while (wanted_.load() == seen) futex_wait(&wanted_, seen);
    gatherer_sleeps_.store(false);
    // The page that is waited for may be in any of the lanes that are active now.
    for (std::uint32_t owed = 0;;) {
      if (std::uint32_t wanted = wanted_.load(); wanted != seen) {
        seen = wanted;
        owed = active_.load();
      }
      if ((owed &= active_.load()) == 0) break;
      if (!poll()) wait(10'000'000);
    }
  }
}

// Deals with the page and, when it is far, with its far neighbours behind it. Returns how many pages that were.
std::uint32_t Hints::bring_one_run(Lane& lane, const Wanted& wanted, PageIndex page, Evictor& direct) {
  PageWord word = core_.pages[page].load();
  bool protection_goes = word.state() == PageState::resident && wanted.is_written(page) && !word.dirty();
  bool ours = word.state() == PageState::far || word.state() == PageState::parked || protection_goes;
  if (word.busy() || !ours || !core_.pages[page].try_lock(&word)) return 1;
  switch (word.state()) {
    case PageState::far:
      return fetch(lane, wanted, page, word, direct);
    case PageState::parked:
      count(Counter::hint_refaults);
      core_.transitions.take_back(page, word, expects_write(page, word, wanted), wanted.priority);
      return 1;
    case PageState::resident:
      if (wanted.is_written(page) && !word.dirty()) {
        core_.transitions.make_writable(page, word);
        count(Counter::hint_protection_cleared);
        return 1;
      }
      [[fallthrough]];
    default:
      core_.transitions.none(page, word);  // it changed meanwhile
      return 1;
  }
}

// The page is locked and far.
std::uint32_t Hints::fetch(Lane& lane, const Wanted& wanted, PageIndex page, PageWord word, Evictor& direct) {
  if (!open(lane)) {
    core_.transitions.none(page, word);
    return 1;
  }
  std::array<PageIndex, PolicyHost::kNextMax> next;
  std::uint32_t next_most = std::min(bringer_.run_max() - 1, core_.read_ahead_max(page));
  std::size_t besides =
      core_.policy.hinted(page, std::span(next).first(std::min<std::size_t>(next_most, next.size())));
  core_.transitions.begin_arrival(page, word, expects_write(page, word, wanted));
  PageRun run{page, 1};
  for (std::uint32_t most = bringer_.run_max(); run.end() < wanted.all.end() && run.count < most; ++run.count)
    if (!bringer_.begin(run.end(), PageState::far, wanted.is_written(run.end()))) break;
  // As for a fault's run: one page in the middle that is mapped otherwise would cut it in pieces.
  PageIndex last = run.first + (run.count - 1);
  if (!wanted.is_written(last)) bringer_.sample(run, last);
  bringer_.make_room(run.count, direct);
  core_.budget.add(run.count);
  count(Counter::hint_pages_in, run.count);
  std::uint32_t ahead = 0;
  for (std::uint32_t i = 0; i < run.count; ++i) ahead += !wanted.is_now(run.first + i);
  if (ahead != 0) count(Counter::pages_read_ahead, ahead);
  PageIndex first_wanted = run.first <= wanted.now.first && wanted.now.first < run.end() ? wanted.now.first : page;
  lane.fetcher->start(run, first_wanted, wanted.is_written(first_wanted), wanted.priority);
  fetch_besides(lane, std::span(next).first(besides));
  return run.count;
}

// What the policy would bring as well: only where there is room, for nobody waits for it.
void Hints::fetch_besides(Lane& lane, std::span<const PageIndex> pages) {
  std::uint32_t asked = 0;
  for (PageIndex page : pages) {
    if (!core_.budget.has_room(1)) break;
    if (!bringer_.begin(page, PageState::far)) continue;
    core_.budget.add(1);
    if (!lane.fetcher->start_unasked(page)) break;
    ++asked;
  }
  if (asked != 0) count(Counter::pages_read_ahead, asked);
}

bool Hints::expects_write(PageIndex page, PageWord word, const Wanted& wanted) {
  return wanted.is_written(page) || bringer_.expects_write(page, word);
}

void Hints::pause() {
  for (Lane& lane : lanes_) {
    lane.mutex.lock();
    lane.finish_all();
  }
}

void Hints::resume() {
  for (Lane& lane : lanes_) leave(lane);
}

// The parent goes on using its channels: they are left alone, not closed.
void Hints::after_fork_in_child() {
  for (Lane& lane : lanes_) {
    static_cast<void>(lane.fetcher.release());
    lane.mutex.reset_after_fork();
  }
  active_.store(0);
  wanted_.store(0);
  gatherer_sleeps_.store(false);
  no_lane_until_ns_.store(0);
}

}  // namespace hinterland
