#include "trace/replay.hpp"

#include <algorithm>

#include "policy/policies.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint32_t kStreamWindow = UINT32_MAX;  // streams count in 32 bits, as the window does

}  // namespace

ReplayOptions recorded_settings(const TraceFile& trace) {
  ReplayOptions recorded;
  recorded.local_bytes = trace.process.local_bytes;
  recorded.policy = find_policy(trace.process.policy.c_str());
  recorded.read_ahead_pages = static_cast<std::uint32_t>(trace.process.read_ahead_pages);
  recorded.far_answers_at_once = answers_at_once(trace.process.far_url);
  return recorded;
}

Replay::Replay(const ReplayOptions& options)
    : options_(options),
      streams_(options.read_ahead_pages, false),
      pager_(options.local_bytes, options.policy, options_.policy_settings.c_str(), options.far_answers_at_once) {}

void Replay::access(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page) {
  std::uint64_t number = accesses_++;
  if (!pager_.has_room()) return;
  pager_.tick(record.time_ns);
  while (!unseen_.empty() && unseen_.top().time <= number) access_unseen();
  if (options_.outlook != nullptr) access_left_out(number, hint, last_page), give_back(number);
  if (record.kind > FaultKind::refault) return;  // waited for, or there by then: the fault before says it
  if (options_.follows) follow(record);
  ReplayPage& page = pager_.page_at(record.page);
  bool there = page.state == State::resident;
  if (record.kind != FaultKind::write_protect || !there) {
    ++result_.accesses;
    if (there) ++result_.hits;
  }
  serve(record, hint, last_page);
  pager_.page_at(record.page).last = number;  // not before: a first touch makes a new page of it
  pager_.page_at(record.page).hint = hint;
  if (options_.outlook != nullptr)
    pager_.page_at(record.page).forgotten = options_.outlook->after(number).next == ReplayOutlook::Next::forgotten;
  finish(number);
}

void Replay::follow(const FaultRecord& record) {
  if (record.kind == FaultKind::read || record.kind == FaultKind::write) pager_.put_far(record.page);
  if (record.kind == FaultKind::refault) pager_.put_into_frame(record.page);
  if (record.kind == FaultKind::first_touch) pager_.forget(record.page);
}

void Replay::access_unseen() {
  Unseen next = unseen_.top();
  unseen_.pop();
  ReplayPage& page = pager_.page_at(next.page);
  bool stayed_away = (page.state == State::parked || page.state == State::far) && page.last == next.last;
  if (!stayed_away) return;
  std::uint64_t* last_page = page.hint != nullptr ? &last_unseen_[page.hint] : nullptr;
  serve({.page = next.page, .expects_write = page.was_dirty}, page.hint, last_page);
  finish(next.time);
}

// What a scan went over before this fault, which goes on with it at the same place of the program.
void Replay::access_left_out(std::uint64_t number, const ReplayHint* hint, std::uint64_t* last_page) {
  const std::vector<ReplayOutlook::Touch>& touches = options_.outlook->touches();
  for (; next_touch_ < touches.size() && touches[next_touch_].number <= number; ++next_touch_) {
    std::uint64_t address = touches[next_touch_].page;
    const ReplayPage& page = pager_.page_at(address);
    serve({.page = address, .expects_write = page.was_dirty}, hint, last_page);
    finish(number);
  }
}

// What the program gave back before this fault, or got again.
void Replay::give_back(std::uint64_t number) {
  const std::vector<ReplayOutlook::Freed>& freed = options_.outlook->freed();
  for (; next_freed_ < freed.size() && freed[next_freed_].number <= number; ++next_freed_) {
    auto [since, address, how] = freed[next_freed_];
    ReplayPage& page = pager_.page_at(address);
    if (page.state == State::untouched) continue;
    if (how == GivenBack::How::taken_again) {
      if (page.state == State::resident && page.forgotten) pager_.renew(address);
      continue;
    }
    // The heap may have given it to somebody else before the pager heard of it.
    if (options_.outlook->after(page.last).next == ReplayOutlook::Next::kept) continue;
    if (page.state == State::resident && how == GivenBack::How::freed)
      page.forgotten = page.dirty = true;
    else
      pager_.forget(address);
  }
}

void Replay::finish(std::uint64_t number) {
  pager_.keep_room(number, &left_);
  result_.pages_out = pager_.pages_out();
  if (options_.outlook == nullptr) return;
  for (std::uint64_t page : left_) {
    std::uint64_t last = pager_.page_at(page).last;
    ReplayOutlook::Stay stay = options_.outlook->after(last);
    if (number + stay.gone < last + stay.left) unseen_.push({number + stay.gone, page, last});
  }
}

std::uint64_t Replay::left(std::uint64_t page) {
  const ReplayPage& found = pager_.page_at(page);
  return found.state == State::resident ? accesses_ : found.left;
}

void Replay::serve(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page) {
  ReplayPage& page = pager_.page_at(record.page);
  if (record.kind == FaultKind::write_protect && page.state == State::resident)
    return touch(record.page, record, hint);
  std::int64_t ahead = hint != nullptr ? read_ahead_of(*hint, record.page, last_page) : 0;
  // Touched for the first time once more. Where there is more room than at recording it may not have left meanwhile.
  bool untouched = record.kind == FaultKind::first_touch;
  if (untouched && page.state != State::resident) pager_.forget(record.page);
  // Seen for the first time, but not touched for the first time: written before the trace began.
  if (!untouched && page.state == State::untouched) page.state = State::far;
  if (page.state != State::resident) bring(record, hint, ahead);
  touch(record.page, record, hint);
}

void Replay::touch(std::uint64_t address, const FaultRecord& record, const ReplayHint* hint) {
  ReplayPage& page = pager_.page_at(address);
  if (page.ahead) ++result_.ahead_used;
  page.ahead = false;
  bool announced = hint != nullptr && hint->write;
  // A page that was mapped writable at recording is taken to have been written, as was expected then.
  bool written = announced || record.write || record.expects_write;
  if (page.dirty || !written) return;
  ++(announced ? result_.hinted_protection : result_.protection);
  pager_.note_written(address);
}

void Replay::bring(const FaultRecord& record, const ReplayHint* hint, std::int64_t ahead) {
  bool write = record.write || (hint != nullptr && hint->write);
  switch (pager_.page_at(record.page).state) {
    case State::parked:
      ++(hint != nullptr ? result_.hinted_refaults : result_.refaults);
      pager_.take_back(record.page, write, hint != nullptr ? hint->priority : 0);
      break;
    case State::untouched: {  // hints leave it to the fault
      ++result_.first_touch;
      Run run = run_around(record.page, State::untouched);
      if (run.count < run.wanted || run.steps != 0) streams_.brought_only(index_of(record.page), run.count - 1);
      result_.ahead += run.count - 1;
      result_.zeros_ahead += run.count - 1;
      pager_.bring_zeros(run.first, run.count, record.page);
      break;
    }
    default:
      if (hint != nullptr) {
        ++result_.hinted_fetches;
        bring_hinted(record.page, *hint, ahead);
        break;
      }
      bring_far(record);
  }
}

void Replay::bring_far(const FaultRecord& record) {
  ++result_.fetches;
  std::uint32_t most = std::min(pager_.run_max(), options_.read_ahead_pages + 1) - 1;
  bool chosen = pager_.missed(record.page, most, &next_);
  Run run = chosen ? Run{record.page, 1, 1} : run_around(record.page, State::far);
  for (std::uint32_t i = 1; !chosen && i <= run.steps; ++i)
    next_.push_back(record.page + static_cast<std::uint64_t>(std::int64_t{run.stride} * i));
  ReplayPager::Fetch wanted{.first = run.first,
                            .count = run.count,
                            .asked = record.page,
                            .asked_end = record.page + 1,
                            .write = record.write};
  std::uint32_t brought = run.count - 1;
  // What nobody waits for comes first, where the device answers at once, and only where there is room.
  pager_.begin(wanted);
  if (options_.far_answers_at_once) brought += fetch_unasked(record.page);
  pager_.finish(wanted);
  note_fetched(wanted);
  if (!options_.far_answers_at_once) brought += fetch_unasked(record.page);
  if (!chosen && brought < run.wanted - 1 + run.steps) streams_.brought_only(index_of(record.page), brought);
}

// Those of next_. Returns how many.
std::uint32_t Replay::fetch_unasked(std::uint64_t asked) {
  std::uint32_t count = 0;
  for (std::uint64_t at : next_) {
    if (!pager_.has_room_for_one()) break;
    if (!is_in(State::far, at)) continue;
    fetch({.first = at, .count = 1, .asked = asked, .asked_end = asked + 1});
    ++count;
  }
  return count;
}

void Replay::fetch(ReplayPager::Fetch wanted) {
  pager_.begin(wanted);
  pager_.finish(wanted);
  note_fetched(wanted);
}

void Replay::note_fetched(const ReplayPager::Fetch& wanted) {
  result_.pages_in += wanted.count;
  std::uint64_t asked = std::max(wanted.asked, wanted.first);
  std::uint64_t asked_end = std::min(wanted.asked_end, wanted.first + wanted.count);
  result_.ahead += wanted.count - (asked < asked_end ? asked_end - asked : 0);
}

// The page and, as far as its stream goes, its neighbours in the same state.
Replay::Run Replay::run_around(std::uint64_t page, State state) {
  std::uint32_t most = std::min(pager_.run_max(), options_.read_ahead_pages + 1);
  PageIndex index = index_of(page);
  StreamWindow proposed = streams_.on_fault(index, kStreamWindow, most);
  PageRun window = proposed.run;
  std::uint64_t wanted_first = page - (index.value - window.first.value), wanted_end = wanted_first + window.count;
  std::uint64_t first = page, end = page + 1;
  while (end < wanted_end && end - first < most && is_in(state, end)) ++end;
  while (first > wanted_first && end - first < most && is_in(state, first - 1)) --first;
  return {first, static_cast<std::uint32_t>(end - first), window.count, proposed.stride, proposed.steps};
}

bool Replay::is_in(State state, std::uint64_t address) {
  ReplayPage& page = pager_.page_at(address);
  if (!page.forgotten || page.state == State::resident) return page.state == state;
  if (state == State::untouched) pager_.forget(address);
  return state == State::untouched;
}

// Cut to what the budget can hold, and in runs; far pages only.
void Replay::bring_hinted(std::uint64_t address, const ReplayHint& hint, std::int64_t ahead) {
  std::int64_t most = std::max<std::int64_t>(pager_.limit() / 4, 1);
  std::int64_t now = std::min<std::int64_t>(std::int64_t{hint.pages_after} + 1, most);
  std::int64_t room = std::min(most - now, std::max<std::int64_t>(most / 4, 1));
  if (hint.sequential) room = std::min(room, std::max<std::int64_t>(options_.read_ahead_pages, now) - now);
  ahead = std::clamp(ahead, -room, room);
  std::uint64_t first = address + static_cast<std::uint64_t>(std::min<std::int64_t>(ahead, 0));
  std::uint64_t end = address + static_cast<std::uint64_t>(now + std::max<std::int64_t>(ahead, 0));
  for (std::uint64_t at = first; at < end;) {
    std::uint64_t run_end = at;
    while (run_end < end && run_end - at < pager_.run_max() && pager_.page_at(run_end).state == State::far) ++run_end;
    if (run_end != at) {
      pager_.hinted(at, std::min(pager_.run_max(), options_.read_ahead_pages + 1) - 1, &next_);
      fetch({.first = at,
             .count = static_cast<std::uint32_t>(run_end - at),
             .asked = address,
             .asked_end = address + static_cast<std::uint64_t>(now),
             .write = hint.write,
             .why = HL_ARRIVAL_HINT,
             .priority = hint.priority});
      fetch_unasked(at);
    }
    at = std::max(run_end, at + 1);
  }
}

// As hint.h: what goes through memory in steps of up to 16 pages reads ahead in its direction.
std::int64_t Replay::read_ahead_of(const ReplayHint& hint, std::uint64_t page, std::uint64_t* last_page) const {
  if (!hint.sequential || last_page == nullptr) return hint.read_ahead;
  auto step = static_cast<std::int64_t>(page - *last_page);
  *last_page = page;
  // Of what was read ahead when it was recorded the trace has no access: the next one is behind it.
  std::int64_t most = 16 + std::int64_t{options_.recorded_read_ahead_pages};
  if (hint.read_ahead == 0 && step > 0 && step <= most) return INT32_MAX;
  if (hint.read_ahead == 0 && step < 0 && step >= -most) return -INT32_MAX;
  return hint.read_ahead;
}

}  // namespace hinterland::trace
