#include "trace/replay.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace hinterland::trace {
namespace {

constexpr std::uint32_t kGroup = 16;                  // pages that are numbered together (paging/page_table.hpp)
constexpr hl_page kPagesMax = 1u << 26;               // 256 GiB of pages that fault
constexpr std::uint32_t kStreamWindow = 0xffff'0000;  // streams count in 32 bits, as the window does

// For the policy: untouched parts cost nothing. Given back with the process: a policy has no end of its own.
void* reserve(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Replay::Replay(const ReplayOptions& options) : options_(options), streams_(options.read_ahead_pages, false) {
  budget_.set_limit(options.local_bytes);
  second_chance_.enabled = std::strcmp(options.policy->name, "fifo") != 0;
  hl_policy_env environment{HL_POLICY_ABI_VERSION, kPagesMax, reserve, nullptr, nullptr};
  policy_ = options.policy->create(&environment);
}

Replay::~Replay() = default;

Replay::Page& Replay::page_at(std::uint64_t page) {
  auto [group, fresh] = groups_.try_emplace(page / kGroup, static_cast<hl_page>(pages_.size()));
  if (fresh)
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      addresses_.push_back(page / kGroup * kGroup + i);
      pages_.push_back({static_cast<hl_page>(pages_.size()), State::untouched, false, 0});
    }
  return pages_[group->second + page % kGroup];
}

void Replay::fault(const FaultRecord& record) {
  if (policy_ == nullptr || pages_.size() + kGroup > kPagesMax) return;
  if (first_page_ == 0) first_page_ = record.page > kStreamWindow / 2 ? record.page - kStreamWindow / 2 : 0;
  if (record.kind == FaultKind::write_protect) {
    page_at(record.page).dirty = true;
    return;
  }
  if (record.kind > FaultKind::refault) return;  // waited for, or there by then: the fault before says it
  ++result_.accesses;
  Page& page = page_at(record.page);
  bool write = record.write;
  if (page.state == State::resident) {
    ++result_.hits;
    page.dirty = page.dirty || write;
    return;
  }
  // A page seen for the first time that was far then was written before the trace began.
  if (page.state == State::untouched && record.kind != FaultKind::first_touch) page.state = State::far;
  bring(record.page, page, record);
}

void Replay::bring(std::uint64_t address, Page& page, const FaultRecord& record) {
  hl_page number = page.number;  // the vector may grow below
  if (page.state == State::parked) {
    ++result_.refaults;
    second_chance_.note_hit();
    page.state = State::resident;
    page.dirty = page.dirty || record.write;
    --parked_count_;
    options_.policy->arrived(policy_, number, 1, HL_ARRIVAL_REFAULT, 0);
  } else if (page.state == State::untouched) {
    ++result_.first_touch;
    bring_run(address, State::untouched, HL_ARRIVAL_FIRST_TOUCH);
  } else {
    ++result_.fetches;
    result_.pages_in += bring_run(address, State::far, HL_ARRIVAL_FAULT);
    if (record.write) pages_[number].dirty = true;
  }
  keep_budget();
}

// The page and, as far as its stream goes, its neighbours in the same state.
std::uint32_t Replay::bring_run(std::uint64_t address, State from, hl_arrival why) {
  auto index = static_cast<std::uint32_t>(address - first_page_);
  PageRun run = streams_.on_fault({index}, kStreamWindow).run;
  auto most = static_cast<std::uint32_t>(std::clamp<std::int64_t>(budget_.limit() / 16, 1, 64));
  std::uint32_t brought = 0;
  auto take = [&](std::uint32_t at) {
    Page& page = page_at(first_page_ + at);
    if (page.state != from || brought == most) return false;
    page.state = State::resident;
    page.dirty = from == State::untouched;
    budget_.add(1);
    options_.policy->arrived(policy_, page.number, 1, at == index ? why : HL_ARRIVAL_READ_AHEAD, 0);
    ++brought;
    return true;
  };
  if (!take(index)) return 0;
  for (std::uint32_t at = index + 1; at < run.end().value && take(at);) ++at;
  for (std::uint32_t at = index; at > run.first.value && take(at - 1);) --at;
  return brought;
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
