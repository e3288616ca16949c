#include "trace/profile.hpp"

#include <algorithm>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "trace/allocation_profile.hpp"

namespace hinterland::trace {

const std::array<const char*, kFaultKinds> kFaultKindNames = {
    "first touch", "read", "write", "write-protect", "refault", "in transit", "spurious", "lost"};

std::string Site::name() const {
  std::string where =
      file.empty() ? "" : file.substr(file.rfind('/') + 1) + (line > 0 ? ":" + std::to_string(line) : "");
  return where.empty() ? function : where + " " + without_arguments(function);
}

std::size_t Profile::sites_covering(double share) const {
  double all = 0, sum = 0;
  for (const Site& site : sites) all += site.all;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sum += sites[i].all;
    if (sum >= share * all * (1 - 1e-9)) return i + 1;
  }
  return sites.size();
}

Place place_of(const Stack& stack, Symbols& symbols) {
  Place with_line, without_line, innermost;
  std::string via;
  for (std::uint64_t address : stack.addresses)
    for (const Frame& frame : symbols.frames_at(address)) {
      if (innermost.frame == nullptr) innermost = {&frame, "", address};
      if (frame.library) {
        via = frame.function;
        continue;
      }
      if (without_line.frame == nullptr) without_line = {&frame, via, address};
      if (frame.file.empty() || frame.line == 0) continue;
      with_line = {&frame, via, address};
      // A program without lines that calls back from one with: the fault is the nearer one's.
      return without_line.frame->module == frame.module ? with_line : without_line;
    }
  return without_line.frame != nullptr ? without_line : innermost;
}

namespace {

using SiteKey = std::tuple<std::string, std::string, int>;

SiteKey key_of(const Frame& frame, GroupBy group) {
  return {frame.function, frame.file, group == GroupBy::line ? frame.line : 0};
}

class SiteTable {
 public:
  Site& at(const SiteKey& key, const std::string& module) {
    auto [found, fresh] = index_.try_emplace(key, sites.size());
    if (fresh) {
      Site site;
      std::tie(site.function, site.file, site.line) = key;
      site.module = module;
      sites.push_back(std::move(site));
    }
    return sites[found->second];
  }
  std::vector<Site> sites;

 private:
  std::map<SiteKey, std::size_t> index_;
};

std::string thread_text(const TraceFile& trace, std::uint64_t thread_id) {
  auto name = trace.thread_names.find(thread_id);
  return (name != trace.thread_names.end() ? name->second + " " : "thread ") + std::to_string(thread_id);
}

struct StackKey {
  std::uint64_t stack, thread;
  bool operator==(const StackKey&) const = default;
};
struct StackKeyHash {
  std::size_t operator()(const StackKey& key) const { return key.stack * 0x9e3779b97f4a7c15 + key.thread; }
};

// Equal stacks of a thread become one, so that what follows is work by stack and not by sample.
struct Gathered {
  CallStack stack;
  std::uint64_t samples = 0;
  double latency_sum = 0, latency_weight = 0;
};

// Faults are all known, stacks are a sample; so the samples of each kind of fault in each span of time are made to
// stand for just the faults of that kind in that span (post-stratification). That takes away what the kernel's
// spacing lags behind when a program changes its pace.
class Strata {
 public:
  explicit Strata(const TraceFile& trace) : span_ns_(trace.summary.ended_ns / kSpans + 1) {
    trace.for_each_fault([&](const FaultRecord& fault) { ++cell(fault).faults; });
    for (const StackSample& sample : trace.samples) {
      Cell& at = cell(sample.fault);
      at.weight += static_cast<double>(sample.weight);
      ++at.samples;
    }
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind) settle(kind);
  }
  double weight_of(const StackSample& sample) {
    return static_cast<double>(sample.weight) * cell(sample.fault).factor;
  }

 private:
  static constexpr std::size_t kSpans = 64;
  static constexpr std::uint64_t kSamplesLeast = 16;  // with fewer, chance would weigh more than the kernel's lag
  struct Cell {
    std::uint64_t faults = 0, samples = 0;
    double weight = 0, factor = 1;
  };
  Cell& cell(const FaultRecord& fault) {
    std::size_t span = std::min<std::uint64_t>(fault.time_ns / span_ns_, kSpans - 1);
    return cells_[static_cast<std::size_t>(fault.kind)][span];
  }
  // Spans with too few samples share one factor; those without any hand their faults to them, or to all.
  void settle(std::size_t kind) {
    double faults = 0, weight = 0, all_weight = 0;
    for (Cell& at : cells_[kind]) {
      all_weight += at.weight;
      if (at.samples >= kSamplesLeast) {
        at.factor = static_cast<double>(at.faults) / at.weight;
        continue;
      }
      faults += static_cast<double>(at.faults);
      weight += at.weight;
    }
    if (weight > 0)
      for (Cell& at : cells_[kind])
        if (at.samples < kSamplesLeast) at.factor = faults / weight;
    if (weight > 0 || all_weight <= 0 || faults <= 0) return;
    double counted = 0;
    for (const Cell& at : cells_[kind]) counted += static_cast<double>(at.faults);
    for (Cell& at : cells_[kind])
      if (at.samples >= kSamplesLeast) at.factor *= counted / (counted - faults);
  }

  std::uint64_t span_ns_;
  std::array<std::array<Cell, kSpans>, kFaultKinds> cells_{};
};

std::vector<Gathered> gather(const TraceFile& trace) {
  auto strata = std::make_unique<Strata>(trace);
  std::unordered_map<StackKey, std::size_t, StackKeyHash> index;
  std::vector<Gathered> all;
  for (const StackSample& sample : trace.samples) {
    auto [at, fresh] = index.try_emplace({sample.stack, sample.fault.thread_id}, all.size());
    if (fresh) all.push_back({{sample.stack, sample.fault.thread_id, {}, 0}, 0, 0, 0});
    Gathered& one = all[at->second];
    double weight = strata->weight_of(sample);
    one.stack.faults[static_cast<std::size_t>(sample.fault.kind)] += weight;
    one.stack.all += weight;
    ++one.samples;
    if (sample.latency_ns == 0) continue;
    one.latency_sum += weight * static_cast<double>(sample.latency_ns);
    one.latency_weight += weight;
  }
  return all;
}

void count_faults(const TraceFile& trace, Profile& profile) {
  trace.for_each_fault([&](const FaultRecord& fault) {
    ++profile.faults[static_cast<std::size_t>(fault.kind)];
    ++profile.faults_all;
  });
}

void put_allocations(const TraceFile& trace, Symbols& symbols, Profile& profile) {
  AllocationProfile allocations = make_allocation_profile(trace, symbols);
  double all = std::max(static_cast<double>(profile.faults_all), 1.0);
  profile.attributed_exactly = allocations.exact / all;
  profile.attributed = profile.attributed_exactly + allocations.estimated / all;
  profile.sites = std::move(allocations.sites);
}

}  // namespace

Profile make_profile(const TraceFile& trace, Symbols& symbols, GroupBy group) {
  Profile profile;
  count_faults(trace, profile);
  SiteTable table;
  std::vector<double> latency_weights;
  std::uint64_t whole = 0;
  for (Gathered& one : gather(trace)) {
    const Stack& stack = trace.stacks[one.stack.stack];
    Place place = place_of(stack, symbols);
    if (place.frame == nullptr) continue;  // an empty stack
    SiteKey key = group == GroupBy::thread ? SiteKey{thread_text(trace, one.stack.thread_id), "", 0}
                                           : key_of(*place.frame, group);
    Site& site = table.at(key, place.frame->module);
    for (std::size_t i = 0; i < kFaultKinds; ++i) site.faults[i] += one.stack.faults[i];
    site.all += one.stack.all;
    site.samples += one.samples;
    if (!place.via.empty()) site.via[place.via] += one.stack.all;
    auto index = static_cast<std::size_t>(&site - table.sites.data());
    latency_weights.resize(std::max(latency_weights.size(), index + 1));
    latency_weights[index] += one.latency_weight;
    site.latency_ns += one.latency_sum;
    if (stack.whole) whole += one.samples;
    profile.stacks.push_back(one.stack);
  }
  for (std::size_t i = 0; i < table.sites.size(); ++i)
    if (latency_weights[i] > 0) table.sites[i].latency_ns /= latency_weights[i];
  profile.sites = std::move(table.sites);
  std::stable_sort(profile.sites.begin(), profile.sites.end(),
                   [](const Site& a, const Site& b) { return a.all > b.all; });
  if (group == GroupBy::allocation) put_allocations(trace, symbols, profile);
  for (const StackSample& sample : trace.samples) profile.sampled_faults += static_cast<double>(sample.weight);
  profile.remarks = symbols.remarks();
  if (!trace.samples.empty())
    profile.whole_stacks = static_cast<double>(whole) / static_cast<double>(trace.samples.size());
  const Summary& summary = trace.summary;
  if (summary.ended_ns > 0)  // the program pays for each stack that the kernel copies, also for those not kept
    profile.tracing_cost = static_cast<double>(summary.sample_cost_ns * (summary.samples + summary.samples_dropped +
                                                                         summary.samples_unmatched)) /
                           static_cast<double>(summary.ended_ns);
  return profile;
}

}  // namespace hinterland::trace
