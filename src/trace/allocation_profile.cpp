#include "trace/allocation_profile.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

using Kinds = std::array<double, kFaultKinds>;

// What is known of the faults on memory that was allocated by one stack.
struct Source {
  bool mapped = false;
  std::uint64_t allocations = 0;
  Kinds exact{}, sampled{};
};

// Which recorded allocations live, as time goes on.
class Living {
 public:
  struct One {
    std::uint64_t end = 0, made_ns = 0;
    double each = 1;  // bytes of such allocations for each byte of it
    Source* source = nullptr;
  };

  // Whatever was recorded there is gone: its end may not have been recorded.
  void begin(const AllocationRecord& record, Source& source) {
    end_range(record.address, record.bytes);
    if (record.bytes == 0) return;
    double each = static_cast<double>(record.stands_for) / static_cast<double>(record.bytes);
    blocks_[record.address] = {record.address + record.bytes, record.time_ns, std::max(each, 1.0), &source};
  }
  // Not another one that has the address by now.
  void end_block(const AllocationRecord& record) {
    auto found = blocks_.find(record.address);
    if (found != blocks_.end() && found->second.made_ns == record.made_ns) blocks_.erase(found);
  }
  void end_range(std::uint64_t start, std::uint64_t bytes) {
    std::uint64_t end = start + bytes;
    auto at = blocks_.upper_bound(start);
    if (at != blocks_.begin()) --at;
    while (at != blocks_.end() && at->first < end) {
      auto [first, one] = *at;
      if (one.end <= start) {
        ++at;
        continue;
      }
      at = blocks_.erase(at);
      if (first < start) blocks_[first] = {start, one.made_ns, one.each, one.source};
      if (one.end > end) blocks_[end] = one;
    }
  }
  // visit(one, share of the page that is its)
  template <typename Visit>
  void on_page(std::uint64_t page, Visit&& visit) const {
    std::uint64_t start = page << kPageShift, end = start + kPageSize;
    auto at = blocks_.upper_bound(start);
    if (at != blocks_.begin()) --at;
    for (; at != blocks_.end() && at->first < end; ++at)
      if (at->second.end > start)
        visit(at->second,
              static_cast<double>(std::min(end, at->second.end) - std::max(start, at->first)) / kPageSize);
  }

 private:
  std::map<std::uint64_t, One> blocks_;
};

std::vector<AllocationRecord> records_of(const TraceFile& trace) {
  std::vector<AllocationRecord> records;
  trace.for_each_allocation([&](const AllocationRecord& record) { records.push_back(record); });
  // Records of several threads are in the order in which they found places.
  std::stable_sort(records.begin(), records.end(),
                   [](const AllocationRecord& a, const AllocationRecord& b) { return a.time_ns < b.time_ns; });
  return records;
}

class Sources {
 public:
  explicit Sources(const TraceFile& trace) : trace_(trace) {}

  void attribute() {
    std::vector<AllocationRecord> records = records_of(trace_);
    auto next = records.begin();
    trace_.for_each_fault([&](const FaultRecord& fault) {
      for (; next != records.end() && next->time_ns <= trace_.process.started_ns + fault.time_ns; ++next) take(*next);
      count(fault);
    });
  }
  std::map<std::uint64_t, Source> all;  // by stack; nodes stay where they are

 private:
  void take(const AllocationRecord& record) {
    if (record.kind == AllocationKind::block_ended) return living_.end_block(record);
    if (record.kind == AllocationKind::range_ended) return living_.end_range(record.address, record.bytes);
    Source& source = all[record.stack];
    source.mapped = record.kind == AllocationKind::mapping;
    ++source.allocations;
    living_.begin(record, source);
  }
  void count(const FaultRecord& fault) {
    auto kind = static_cast<std::size_t>(fault.kind);
    living_.on_page(fault.page, [&](const Living::One& one, double share) {
      bool exact = one.each <= 1;  // it stands for itself alone
      (exact ? one.source->exact : one.source->sampled)[kind] += share * one.each;
    });
  }

  const TraceFile& trace_;
  Living living_;
};

double sum_of(const Kinds& kinds) {
  double sum = 0;
  for (double faults : kinds) sum += faults;
  return sum;
}

// By line, or by function where there are no lines.
class Places {
 public:
  Places(const TraceFile& trace, Symbols& symbols) : trace_(trace), symbols_(symbols) {}

  // `scale`: of what was sampled.
  void add(std::uint64_t stack, const Source& source, double scale) {
    double faults = sum_of(source.exact) + scale * sum_of(source.sampled);
    if (faults <= 0) return;
    Site& site = site_of(stack, source.mapped, faults);
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind)
      site.faults[kind] += source.exact[kind] + scale * source.sampled[kind];
    site.all += faults;
    site.samples += source.allocations;
  }
  std::vector<Site> finish() {
    std::vector<Site> sites;
    for (auto& [key, site] : sites_) sites.push_back(std::move(site));
    std::stable_sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) { return a.all > b.all; });
    return sites;
  }

 private:
  Site& site_of(std::uint64_t stack, bool mapped, double faults) {
    Place place = stack == kNoStack ? Place{} : place_of(trace_.stacks[stack], symbols_);
    if (place.frame == nullptr) {
      Site& unknown = sites_[{"", 0, "(allocated by an unknown caller)"}];
      unknown.function = "(allocated by an unknown caller)";
      return unknown;
    }
    const Frame& frame = *place.frame;
    Site& site = sites_[{frame.file, frame.line, frame.function}];
    site.function = frame.function;
    site.file = frame.file;
    site.line = frame.line;
    site.module = frame.module;
    if (std::string via = mapped && place.via.empty() ? "mmap" : place.via; !via.empty()) site.via[via] += faults;
    return site;
  }

  const TraceFile& trace_;
  Symbols& symbols_;
  std::map<std::tuple<std::string, int, std::string>, Site> sites_;
};

}  // namespace

AllocationProfile make_allocation_profile(const TraceFile& trace, Symbols& symbols) {
  Site rest;
  rest.function = "(not attributed)";
  trace.for_each_fault([&](const FaultRecord& fault) {
    ++rest.faults[static_cast<std::size_t>(fault.kind)];
    ++rest.all;
  });
  Sources sources(trace);
  sources.attribute();
  AllocationProfile profile;
  for (const auto& [stack, source] : sources.all) {
    profile.exact += sum_of(source.exact);
    profile.estimated += sum_of(source.sampled);
  }
  // A sample may say more than there is.
  double room = std::max(rest.all - profile.exact, 0.0);
  double scale = profile.estimated > room ? room / profile.estimated : 1;
  profile.estimated *= scale;
  Places places(trace, symbols);
  for (const auto& [stack, source] : sources.all) places.add(stack, source, scale);
  profile.sites = places.finish();
  for (const Site& site : profile.sites)
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind)
      rest.faults[kind] = std::max(rest.faults[kind] - site.faults[kind], 0.0);
  rest.all = sum_of(rest.faults);
  if (rest.all > 0.5) profile.sites.push_back(std::move(rest));
  return profile;
}

}  // namespace hinterland::trace
