#include "trace/hint_profile.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace hinterland::trace {
namespace {

bool could_be_spared(const FaultRecord& fault) {
  return fault.kind != FaultKind::first_touch && fault.kind <= FaultKind::refault;
}

// By line, or by function where there are no lines.
class HintTable {
 public:
  HintTable(const TraceFile& trace, Symbols& symbols) : trace_(trace), symbols_(symbols) {}

  void add(const HintRecord& hint) {
    HintSite* site = site_of(hint.stack);
    if (site == nullptr) return;
    ++sampled_;
    ++site->place.samples;
    site->pages += static_cast<double>(hint.far + hint.parked + hint.write_protect);
    site->pages_ahead += static_cast<double>(hint.far_ahead);
    site->write = site->write || hint.write;
    site->sequential = site->sequential || hint.sequential;
    site->priority = std::max<int>(site->priority, hint.priority);
  }

  // The sample stands for so many hints.
  std::vector<HintSite> finish(double hints) {
    double scale = hints / std::max(sampled_, 1.0);
    std::vector<HintSite> all;
    for (auto& [key, site] : sites_) {
      site.calls = static_cast<double>(site.place.samples) * scale;
      site.pages *= scale;
      site.pages_ahead *= scale;
      all.push_back(std::move(site));
    }
    std::stable_sort(all.begin(), all.end(), [](const HintSite& a, const HintSite& b) { return a.calls > b.calls; });
    return all;
  }

 private:
  HintSite* site_of(std::uint64_t stack) {
    if (stack == kNoStack) return nullptr;
    auto [known, fresh] = by_stack_.try_emplace(stack, nullptr);
    if (!fresh) return known->second;
    Place place = place_of(trace_.stacks[stack], symbols_);
    if (place.frame == nullptr) return nullptr;
    const Frame& frame = *place.frame;
    HintSite& site = sites_[{frame.file, frame.line, frame.line > 0 ? "" : frame.function}];
    site.place.function = frame.function;
    site.place.file = frame.file;
    site.place.line = frame.line;
    site.place.module = frame.module;
    return known->second = &site;
  }

  const TraceFile& trace_;
  Symbols& symbols_;
  std::map<std::tuple<std::string, int, std::string>, HintSite> sites_;
  std::unordered_map<std::uint64_t, HintSite*> by_stack_;
  double sampled_ = 0;
};

// Faults on pages that a hint had named since the page last came.
std::uint64_t faults_foreseen(const TraceFile& trace) {
  std::vector<HintRecord> hints;
  trace.for_each_hint([&](const HintRecord& hint) { hints.push_back(hint); });
  std::stable_sort(hints.begin(), hints.end(),
                   [](const HintRecord& a, const HintRecord& b) { return a.time_ns < b.time_ns; });
  std::unordered_set<std::uint64_t> named;
  std::uint64_t foreseen = 0;
  auto next = hints.begin();
  constexpr std::uint64_t kPagesMax = 1 << 20;  // the file may say anything
  trace.for_each_fault([&](const FaultRecord& fault) {
    for (; next != hints.end() && next->time_ns <= fault.time_ns; ++next)
      for (std::uint64_t i = 0; i < std::min(next->pages, kPagesMax); ++i) named.insert(next->page + i);
    if (named.erase(fault.page) != 0 && could_be_spared(fault)) ++foreseen;
  });
  return foreseen;
}

}  // namespace

double HintProfile::coverage() const {
  double all = only_noted ? static_cast<double>(faults) : pages + static_cast<double>(faults);
  if (all <= 0) return 0;
  return (only_noted ? static_cast<double>(foreseen) : pages) / all;
}

HintProfile make_hint_profile(const TraceFile& trace, Symbols& symbols) {
  HintProfile profile;
  profile.only_noted = trace.summary.hints_only_noted != 0;
  profile.lost = trace.summary.hints_lost;
  trace.for_each_fault([&](const FaultRecord& fault) { profile.faults += could_be_spared(fault); });
  HintTable table(trace, symbols);
  trace.for_each_hint([&](const HintRecord& hint) {
    ++profile.calls;
    profile.pages += static_cast<double>(hint.far + hint.parked + hint.write_protect);
    profile.pages_ahead += static_cast<double>(hint.far_ahead);
    table.add(hint);
  });
  if (profile.calls == 0) return profile;
  double all = static_cast<double>(profile.calls) + static_cast<double>(profile.lost);
  profile.pages *= all / static_cast<double>(profile.calls);
  profile.pages_ahead *= all / static_cast<double>(profile.calls);
  profile.sites = table.finish(all);
  if (profile.only_noted) {
    double foreseen = static_cast<double>(faults_foreseen(trace)) * all / static_cast<double>(profile.calls);
    profile.foreseen = std::min(static_cast<std::uint64_t>(foreseen), profile.faults);
  }
  return profile;
}

}  // namespace hinterland::trace
