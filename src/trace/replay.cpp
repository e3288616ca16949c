#include "trace/replay.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace hinterland::trace {
namespace {

constexpr std::uint32_t kGroup = 16;                  // pages that are numbered together (paging/page_table.hpp)
constexpr hl_page kPagesMax = 1u << 26;               // 256 GiB of pages that fault
constexpr std::uint32_t kStreamWindow = 0xffff'0000;  // streams count in 32 bits, as the window does

// For the policy: untouched parts cost nothing. A policy has no end of its own, and the call no room for whose it is.
thread_local std::vector<std::pair<void*, std::size_t>>* t_reserved = nullptr;

void* reserve(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_reserved->emplace_back(memory, bytes);
  return memory;
}

}  // namespace

Replay::Replay(const ReplayOptions& options) : options_(options), streams_(options.read_ahead_pages, false) {
  budget_.set_limit(options.local_bytes);
  second_chance_.enabled = std::strcmp(options.policy->name, "fifo") != 0;
  hl_policy_env environment{HL_POLICY_ABI_VERSION, kPagesMax, reserve, nullptr, nullptr};
  t_reserved = &reserved_;
  policy_ = options.policy->create(&environment);
  t_reserved = nullptr;
}

Replay::~Replay() {
  for (auto [memory, bytes] : reserved_) munmap(memory, bytes);
}

Replay::Page& Replay::page_at(std::uint64_t page) {
  auto [group, fresh] = groups_.try_emplace(page / kGroup, static_cast<hl_page>(pages_.size()));
  if (fresh)
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      addresses_.push_back(page / kGroup * kGroup + i);
      pages_.push_back({static_cast<hl_page>(pages_.size()), State::untouched, false, false, 0});
    }
  return pages_[group->second + page % kGroup];
}

void Replay::access(const FaultRecord& record, const ReplayHint* hint, std::uint64_t* last_page) {
  if (policy_ == nullptr || pages_.size() + kGroup > kPagesMax) return;
  if (first_page_ == 0) first_page_ = record.page > kStreamWindow / 2 ? record.page - kStreamWindow / 2 : 0;
  if (record.kind > FaultKind::refault) return;  // waited for, or there by then: the fault before says it
  Page& page = page_at(record.page);
  if (record.kind == FaultKind::write_protect) {
    if (page.state == State::resident && !page.dirty)
      ++(hint != nullptr && hint->write ? result_.hinted_protection : result_.protection);
    page.dirty = true;
    page.ahead = false;
    return;
  }
  ++result_.accesses;
  std::int64_t ahead = hint != nullptr ? read_ahead_of(*hint, record.page, last_page) : 0;
  if (page.state == State::resident) {
    ++result_.hits;
    touch(page, record, hint);
    return;
  }
  // A page seen for the first time that was far then was written before the trace began.
  if (page.state == State::untouched && record.kind != FaultKind::first_touch) page.state = State::far;
  bring(record.page, page, record, hint, ahead);
}

void Replay::touch(Page& page, const FaultRecord& record, const ReplayHint* hint) {
  if (page.ahead) ++result_.ahead_used;
  page.ahead = false;
  page.dirty = page.dirty || record.write || (hint != nullptr && hint->write);
}

void Replay::bring(std::uint64_t address, Page& page, const FaultRecord& record, const ReplayHint* hint,
                   std::int64_t ahead) {
  hl_page number = page.number;  // the vector may grow below
  if (page.state == State::parked) {
    ++(hint != nullptr ? result_.hinted_refaults : result_.refaults);
    second_chance_.note_hit();
    page.state = State::resident;
    --parked_count_;
    options_.policy->arrived(policy_, number, 1, HL_ARRIVAL_REFAULT, hint != nullptr ? hint->priority : 0);
  } else if (page.state == State::untouched) {  // hints leave it to the fault
    ++result_.first_touch;
    bring_run(address, State::untouched, HL_ARRIVAL_FIRST_TOUCH);
  } else if (hint != nullptr) {
    ++result_.hinted_fetches;
    result_.pages_in += bring_hinted(address, *hint, ahead);
  } else {
    ++result_.fetches;
    result_.pages_in += bring_run(address, State::far, HL_ARRIVAL_FAULT);
  }
  if (pages_[number].state == State::resident) touch(pages_[number], record, hint);
  keep_budget();
}

bool Replay::take(std::uint64_t address, State from, hl_arrival why, std::uint8_t priority) {
  Page& page = page_at(address);
  if (page.state != from) return false;
  page.state = State::resident;
  page.dirty = from == State::untouched;
  page.ahead = why == HL_ARRIVAL_READ_AHEAD;
  if (page.ahead) ++result_.ahead;
  budget_.add(1);
  options_.policy->arrived(policy_, page.number, 1, why, priority);
  return true;
}

// The page and, as far as its stream goes, its neighbours in the same state.
std::uint32_t Replay::bring_run(std::uint64_t address, State from, hl_arrival why) {
  auto index = static_cast<std::uint32_t>(address - first_page_);
  auto most = static_cast<std::uint32_t>(std::clamp<std::int64_t>(budget_.limit() / 16, 1, 64));
  PageRun run = streams_.on_fault({index}, kStreamWindow, most).run;
  std::uint32_t brought = 0;
  auto bring_one = [&](std::uint32_t at) {
    if (brought == most || !take(first_page_ + at, from, at == index ? why : HL_ARRIVAL_READ_AHEAD, 0)) return false;
    ++brought;
    return true;
  };
  if (!bring_one(index)) return 0;
  for (std::uint32_t at = index + 1; at < run.end().value && bring_one(at);) ++at;
  for (std::uint32_t at = index; at > run.first.value && bring_one(at - 1);) --at;
  return brought;
}

// As Hints::pages_of() cuts a hint to what the budget can hold; far pages only.
std::uint32_t Replay::bring_hinted(std::uint64_t address, const ReplayHint& hint, std::int64_t ahead) {
  std::int64_t most = std::max<std::int64_t>(budget_.limit() / 4, 1);
  std::int64_t now = std::min<std::int64_t>(std::int64_t{hint.pages_after} + 1, most);
  std::int64_t room = std::min(most - now, std::max<std::int64_t>(most / 4, 1));
  if (hint.sequential) room = std::min(room, std::max<std::int64_t>(options_.read_ahead_pages, now) - now);
  ahead = std::clamp(ahead, -room, room);
  std::uint32_t brought = 0;
  auto first = static_cast<std::int64_t>(address);
  for (std::int64_t at = first; at < first + now; ++at)
    brought += take(static_cast<std::uint64_t>(at), State::far, HL_ARRIVAL_HINT, hint.priority);
  for (std::int64_t step = ahead > 0 ? 1 : -1, at = ahead > 0 ? first + now : first - 1; ahead != 0;
       ahead -= step, at += step)
    brought += take(static_cast<std::uint64_t>(at), State::far, HL_ARRIVAL_READ_AHEAD, hint.priority);
  return brought;
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

// Between the two watermarks, in batches, as the reclaimer does.
void Replay::keep_budget() {
  if (!budget_.should_start()) return;
  hl_page victims[256];
  while (!budget_.should_stop()) {
    auto wanted =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(budget_.pages_until_stop(), 1, std::size(victims)));
    std::uint32_t chosen = options_.policy->choose_victims(policy_, victims, wanted);
    for (std::uint32_t i = 0; i < chosen; ++i) evict(victims[i]);
    if (chosen == 0 && parked_count_ == 0) return;
    expire(chosen == 0 ? 0 : budget_.park_target());
  }
}

void Replay::evict(hl_page number) {
  Page& page = pages_[number];
  if (page.state != State::resident) return;
  if (page.dirty) ++result_.pages_out;
  page.ahead = false;
  if (!wants_frame(page)) {
    page.state = State::far;
    budget_.subtract(1);
    return;
  }
  page.state = State::parked;
  page.dirty = false;
  parked_.push_back({number, ++page.parked});
  ++parked_count_;
  second_chance_.note_parked();
}

bool Replay::wants_frame(const Page& page) {
  if (page.dirty) return true;
  return second_chance_.enabled && (second_chance_.pays() || ++park_sample_ % 16 == 0);
}

void Replay::expire(std::size_t parked_most) {
  while (parked_count_ > parked_most && !parked_.empty()) {
    Page& page = pages_[parked_.front().number];
    bool same = page.parked == parked_.front().time;
    parked_.pop_front();
    if (page.state != State::parked || !same) continue;  // it came back
    page.state = State::far;
    --parked_count_;
    budget_.subtract(1);
  }
}

}  // namespace hinterland::trace
