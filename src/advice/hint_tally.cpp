#include "advice/hint_tally.hpp"

#include <algorithm>

#include "advice/hint_places.hpp"
#include "trace/profile.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint32_t kNone = HintEventInOrder::kNone;
constexpr std::uint64_t kPagesMax = 4096;  // of one hint; the file may say anything
constexpr std::uint64_t kBehindPages = 16;
constexpr int kPatience = 4;  // faults elsewhere, after which a thread is done with what it hinted

class Tally {
 public:
  Tally(const TraceFile& trace, Symbols& symbols, const FaultSites& sites)
      : trace_(trace), symbols_(symbols), sites_(sites), noted_(trace.summary.hints_only_noted != 0) {
    std::uint64_t local_pages = std::max<std::uint64_t>(trace.process.local_bytes >> kPageShift, 64);
    // Long enough for what read-ahead is for, short enough that hardly a page is used by chance meanwhile.
    horizon_ = std::max<std::uint64_t>(local_pages / 8, 64);
    early_ = local_pages / 2;
  }

  HintTally run() {
    find_hints();
    put_in_order();
    result_.faults_behind.resize(result_.hints.size());
    for (const HintEventInOrder& event : result_.events)
      if (event.hint != kNone)
        see_hint(result_.records[event.hint]);
      else
        see_fault(event);
    return std::move(result_);
  }

 private:
  void find_hints() {
    result_.hint_of_stack.assign(trace_.stacks.size(), kNone);
    std::vector<bool> looked_at(trace_.stacks.size());
    std::uint64_t with_callers = 0, all = 0;
    auto of = [&](std::uint64_t stack) {
      if (stack == kNoStack) return kNone;
      if (!looked_at[stack]) result_.hint_of_stack[stack] = hint_at(trace_.stacks[stack]);
      looked_at[stack] = true;
      return result_.hint_of_stack[stack];
    };
    trace_.for_each_hint([&](const HintRecord& record) {
      ++all;
      result_.records.push_back(record);
      std::uint32_t hint = of(record.stack);
      if (hint == kNone) return;
      ++with_callers;
      ReviewedHint& reviewed = result_.hints[hint];
      ++reviewed.fetched;
      reviewed.write = reviewed.write || record.write;
      reviewed.sequential = reviewed.sequential || record.sequential;
      reviewed.priority = std::max<int>(reviewed.priority, record.priority);
    });
    trace_.for_each_hint_found([&](const HintFoundRecord& record) {
      if (std::uint32_t hint = of(record.stack); hint != kNone) ++result_.hints[hint].found;
    });
    double each = static_cast<double>(all) / static_cast<double>(std::max<std::uint64_t>(with_callers, 1));
    for (ReviewedHint& hint : result_.hints) hint.fetches = static_cast<double>(hint.fetched) * each;
    for (const HintPlace& place : hint_places(trace_, symbols_)) hint_named(place.file, place.line, place.function);
  }

  std::uint32_t hint_at(const Stack& stack) {
    Place place = place_of(stack, symbols_);
    if (place.frame == nullptr || place.frame->line == 0) return kNone;
    return hint_named(place.frame->file, place.frame->line, place.frame->function);
  }
  std::uint32_t hint_named(const std::string& file, int line, const std::string& function) {
    auto [at, fresh] = known_.try_emplace({file, line}, static_cast<std::uint32_t>(result_.hints.size()));
    if (fresh) {
      ReviewedHint hint;
      hint.function = function;
      hint.file = file;
      hint.line = line;
      result_.hints.push_back(std::move(hint));
    }
    return at->second;
  }

  void put_in_order() {
    std::uint32_t number = 0;
    for (const HintRecord& record : result_.records) {
      FaultRecord first{record.time_ns, record.page, record.thread_id, FaultKind::read, record.write};
      result_.events.push_back({first, number++, kNone});
    }
    std::size_t fault_number = 0;
    trace_.for_each_fault([&](const FaultRecord& fault) {
      if (fault_number >= sites_.of_fault.size()) return;
      std::uint32_t site = sites_.of_fault[fault_number++];
      if (fault.kind <= FaultKind::refault) result_.events.push_back({fault, kNone, site});
    });
    std::stable_sort(result_.events.begin(), result_.events.end(),
                     [](const auto& a, const auto& b) { return a.fault.time_ns < b.fault.time_ns; });
  }

  // What a thread hinted last.
  struct Last {
    std::uint32_t hint = kNone;
    std::uint64_t first = 0, end = 0;  // pages
    bool behind = false;
    int elsewhere = 0;
  };
  struct Expected {
    std::uint32_t hint = kNone;
    bool ahead = false;
    std::uint64_t until = 0;  // arrivals
  };

  void see_hint(const HintRecord& record) {
    std::uint32_t hint = result_.hint_of(record.stack);
    std::uint64_t pages = std::min(record.pages, kPagesMax);
    auto ahead = static_cast<std::uint64_t>(std::min<std::int64_t>(std::abs(record.read_ahead), kPagesMax));
    std::uint64_t behind = record.read_ahead > 0 ? ahead : 0, before = record.read_ahead > 0 ? 0 : ahead;
    std::uint64_t end = record.page + pages;
    last_[record.thread_id] = {hint, record.page, noted_ ? end : end + behind, false, 0};
    if (noted_) {
      if (hint == kNone) return;
      result_.hints[hint].named += std::min(record.far + record.parked, pages);
      result_.hints[hint].ahead += std::min(record.far_ahead, ahead);
      for (std::uint64_t i = 0; i < pages; ++i) expected_[record.page + i] = {hint, false, arrivals_ + horizon_};
      for (std::uint64_t i = 0; i < behind; ++i) expect_ahead(end + i, hint);
      for (std::uint64_t i = 0; i < std::min(before, record.page); ++i) expect_ahead(record.page - 1 - i, hint);
    } else {
      bool all = record.far == pages;
      for (std::uint64_t i = 0; i < pages; ++i) {
        auto [at, fresh] = brought_.try_emplace(record.page + i, arrivals_);
        if (!fresh && all && hint != kNone && arrivals_ - at->second < early_) ++result_.hints[hint].early;
        if (!fresh && all) at->second = arrivals_;
      }
      arrivals_ += record.far + record.far_ahead;
    }
  }
  void expect_ahead(std::uint64_t page, std::uint32_t hint) {
    Expected& expected = expected_[page];
    // What was named, or asked for ahead before, is another's merit.
    if (expected.hint != kNone && expected.until >= arrivals_) return;
    expected = {hint, true, arrivals_ + horizon_};
  }

  void see_fault(const HintEventInOrder& event) {
    const FaultRecord& fault = event.fault;
    if (fault.kind != FaultKind::write_protect) {
      ++arrivals_;
      brought_[fault.page] = arrivals_;
    }
    if (auto at = expected_.find(fault.page); at != expected_.end()) {
      Expected& expected = at->second;
      if (expected.until >= arrivals_)
        ++(expected.ahead ? result_.hints[expected.hint].ahead_used : result_.hints[expected.hint].used);
      expected_.erase(at);
    }
    if (fault.kind == FaultKind::first_touch) return;
    auto at = last_.find(fault.thread_id);
    if (at == last_.end() || at->second.hint == kNone) return;
    Last& last = at->second;
    if (last.first <= fault.page && fault.page < last.end) return;
    if (fault.page < last.end || fault.page >= last.end + kBehindPages) {
      if (++last.elsewhere > kPatience) last.hint = kNone;
      return;
    }
    ReviewedHint& hint = result_.hints[last.hint];
    if (!last.behind) ++hint.behind;
    last.behind = true;
    ++hint.behind_pages;
    ++result_.faults_behind[last.hint][event.site];
  }

  const TraceFile& trace_;
  Symbols& symbols_;
  const FaultSites& sites_;
  bool noted_;
  std::uint64_t horizon_ = 0, early_ = 0;
  HintTally result_;
  std::map<std::pair<std::string, int>, std::uint32_t> known_;
  std::unordered_map<std::uint64_t, Last> last_;              // by thread
  std::unordered_map<std::uint64_t, Expected> expected_;      // by page, where hints were only noted
  std::unordered_map<std::uint64_t, std::uint64_t> brought_;  // by page: arrivals until then
  std::uint64_t arrivals_ = 0;                                // pages that came so far
};

}  // namespace

HintTally tally_hints(const TraceFile& trace, Symbols& symbols, const FaultSites& sites) {
  return Tally(trace, symbols, sites).run();
}

}  // namespace hinterland::trace
