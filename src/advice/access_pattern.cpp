#include "advice/access_pattern.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace hinterland::trace {
namespace {

constexpr std::int64_t kStep = 16;  // pages: what hint.h takes for going on

struct LastOfPlace {
  std::uint64_t page = 0;
  int direction = 0;
  std::array<std::uint64_t, 8> rows{};  // the last page of each that it went through lately
  std::size_t oldest = 0;
};
struct LastOfThread {
  std::uint64_t page = 0;
  std::uint32_t site = FaultSites::kNone;
};
struct LastOfPage {
  std::uint64_t number = 0;
  std::uint32_t site = FaultSites::kNone;
  bool read = false;
};
// Counts, which become shares at the end.
struct Counts {
  std::uint64_t steps = 0, up = 0, pages = 0, runs = 0, next = 0, back = 0, again = 0, reads = 0, written = 0,
                rows = 0;
  std::vector<std::uint64_t> distances;
};

bool fetches(FaultKind kind) {
  return kind == FaultKind::read || kind == FaultKind::write || kind == FaultKind::refault;
}

class Watcher {
 public:
  Watcher(const FaultSites& sites, std::uint64_t read_ahead_pages)
      : sites_(sites),
        step_(kStep + static_cast<std::int64_t>(read_ahead_pages)),
        patterns_(sites.sites.size()),
        counts_(sites.sites.size()) {}

  void fault(const FaultRecord& fault, std::uint64_t number) {
    std::uint32_t site = number < sites_.of_fault.size() ? sites_.of_fault[number] : FaultSites::kNone;
    if (site == FaultSites::kNone) return;
    AccessPattern& pattern = patterns_[site];
    ++pattern.faults[static_cast<std::size_t>(fault.kind)];
    ++pattern.all;
    LastOfPage& page = pages_[fault.page];
    if (fault.kind == FaultKind::write_protect) {
      if (page.read && page.site != FaultSites::kNone) ++counts_[page.site].written;
      page.read = false;
      return;
    }
    if (fetches(fault.kind)) fetch(fault, site, number, page);
    LastOfThread& thread = threads_[fault.thread_id];
    thread = {fault.page, site};
  }

  std::vector<AccessPattern> patterns() {
    for (std::size_t i = 0; i < patterns_.size(); ++i) settle(patterns_[i], counts_[i]);
    return std::move(patterns_);
  }

 private:
  void fetch(const FaultRecord& fault, std::uint32_t site, std::uint64_t number, LastOfPage& page) {
    ++patterns_[site].fetches;
    Counts& counts = counts_[site];
    step(fault, site, counts);
    LastOfThread& thread = threads_[fault.thread_id];
    if (thread.site != FaultSites::kNone && fault.page == thread.page + 1) ++counts_[thread.site].next;
    if (page.number != 0) {
      ++counts.back;
      counts.distances.push_back(number + 1 - page.number);
      if (page.site != FaultSites::kNone) ++counts_[page.site].again;
    }
    counts.reads += fault.kind == FaultKind::read;
    page = {number + 1, site, fault.kind == FaultKind::read};
  }

  void step(const FaultRecord& fault, std::uint32_t site, Counts& counts) {
    LastOfPlace& last = places_[{site, fault.thread_id}];
    auto step = static_cast<std::int64_t>(fault.page - last.page);
    bool goes_on = last.page != 0 && step != 0 && step <= step_ && step >= -step_;
    int direction = step > 0 ? 1 : -1;
    if (goes_on && (last.direction == 0 || last.direction == direction)) {
      ++counts.steps;
      counts.up += step > 0;
      counts.pages += static_cast<std::uint64_t>(std::abs(step));
      last.direction = direction;
    } else {
      ++counts.runs;
      ++counts.pages;
      last.direction = 0;
    }
    last.page = fault.page;
    row(fault, last, counts);
  }

  // Whether it goes on upwards from one of the places where it was lately.
  void row(const FaultRecord& fault, LastOfPlace& last, Counts& counts) const {
    for (std::uint64_t& head : last.rows) {
      if (head == 0 || fault.page <= head || fault.page - head > static_cast<std::uint64_t>(step_)) continue;
      ++counts.rows;
      head = fault.page;
      return;
    }
    last.rows[last.oldest++ % last.rows.size()] = fault.page;
  }

  static void settle(AccessPattern& pattern, Counts& counts) {
    if (pattern.fetches == 0) return;
    auto share = [&](std::uint64_t part) { return static_cast<double>(part) / static_cast<double>(pattern.fetches); };
    pattern.sequential = share(counts.steps);
    pattern.in_rows = share(counts.rows);
    pattern.run_pages =
        static_cast<double>(counts.pages) / static_cast<double>(std::max<std::uint64_t>(counts.runs, 1));
    pattern.direction = counts.steps == 0 ? 0 : counts.up * 2 >= counts.steps ? 1 : -1;
    pattern.next_page = share(counts.next);
    pattern.comes_back = share(counts.back);
    pattern.used_again = share(counts.again);
    pattern.written_later =
        counts.reads > 0 ? static_cast<double>(counts.written) / static_cast<double>(counts.reads) : 0;
    if (counts.distances.empty()) return;
    auto middle = counts.distances.begin() + static_cast<std::ptrdiff_t>(counts.distances.size() / 2);
    std::nth_element(counts.distances.begin(), middle, counts.distances.end());
    pattern.back_after = *middle;
  }

  const FaultSites& sites_;
  std::int64_t step_;
  std::vector<AccessPattern> patterns_;
  std::vector<Counts> counts_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, LastOfPlace> places_;
  std::unordered_map<std::uint64_t, LastOfThread> threads_;
  std::unordered_map<std::uint64_t, LastOfPage> pages_;
};

}  // namespace

double AccessPattern::writes() const {
  auto count = [&](FaultKind kind) { return static_cast<double>(faults[static_cast<std::size_t>(kind)]); };
  double write = count(FaultKind::write) + count(FaultKind::write_protect), both = write + count(FaultKind::read);
  return both > 0 ? write / both : 0;
}

std::vector<AccessPattern> access_patterns(const TraceFile& trace, const FaultSites& sites) {
  Watcher watcher(sites, trace.process.read_ahead_pages);
  std::uint64_t number = 0;
  trace.for_each_fault([&](const FaultRecord& fault) { watcher.fault(fault, number++); });
  return watcher.patterns();
}

}  // namespace hinterland::trace
