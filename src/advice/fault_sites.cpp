#include "advice/fault_sites.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/profile.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint64_t kNearPages = 64;  // as far as read-ahead goes: the same walk

constexpr std::uint64_t kBetweenPages = 512;  // of two samples of one walk, where few faults are sampled
constexpr std::size_t kLookAround = 8;        // samples before and after a fault, for walks that take turns

struct Sampled {
  std::uint64_t time_ns, page;
  std::uint32_t site;
  std::uint64_t weight;
  std::uint64_t next_page = 0;  // of the same place; its own where there is none
};

// The samples of one thread and kind, in order of time, and how far the faults have come.
struct Lane {
  std::vector<Sampled> samples;
  std::size_t at = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> last_pages;  // by site
};
using LaneKey = std::pair<std::uint64_t, FaultKind>;

class Matcher {
 public:
  Matcher(const TraceFile& trace, const std::vector<std::uint32_t>& site_of_stack) {
    for (const StackSample& sample : trace.samples) {
      std::uint32_t site = site_of_stack[sample.stack];
      if (site == FaultSites::kNone) continue;
      Sampled one{sample.fault.time_ns, sample.fault.page, site, sample.weight};
      lanes_[{sample.fault.thread_id, sample.fault.kind}].samples.push_back(one);
      any_[static_cast<std::size_t>(sample.fault.kind)].samples.push_back(one);
    }
    auto by_time = [](const Sampled& a, const Sampled& b) { return a.time_ns < b.time_ns; };
    auto settle = [&](Lane& lane) {
      std::stable_sort(lane.samples.begin(), lane.samples.end(), by_time);
      std::unordered_map<std::uint32_t, std::uint64_t> next;
      for (Sampled& sample : std::views::reverse(lane.samples)) {
        auto [found, last] = next.try_emplace(sample.site, sample.page);
        sample.next_page = std::exchange(found->second, sample.page);
      }
    };
    for (auto& [key, lane] : lanes_) settle(lane);
    for (Lane& lane : any_) settle(lane);
  }

  std::uint32_t site_of(const FaultRecord& fault, bool* own) {
    auto found = lanes_.find({fault.thread_id, fault.kind});
    Lane& lane = found != lanes_.end() ? found->second : any_[static_cast<std::size_t>(fault.kind)];
    *own = false;
    if (lane.samples.empty()) return FaultSites::kNone;
    while (lane.at < lane.samples.size() && lane.samples[lane.at].time_ns < fault.time_ns) ++lane.at;
    for (std::size_t i = lane.at; i < lane.samples.size() && lane.samples[i].time_ns == fault.time_ns; ++i)
      if (lane.samples[i].page == fault.page) {
        *own = true;
        lane.last_pages[lane.samples[i].site] = fault.page;
        return lane.samples[i].site;
      }
    return like(lane, fault);
  }

 private:
  // Programs do one thing for a while: the samples before and after it say where a fault belongs, when they agree.
  // Else it is where it goes on in memory, if it does; else one of both by chance, so that shares stay what they are.
  // But for one between two pages of a walk near by, and of none of theirs: walks take turns.
  std::uint32_t like(Lane& lane, const FaultRecord& fault) {
    std::uint32_t site = of_its_time(lane, fault);
    std::vector<Walk> walks = walks_around(lane, fault.page);
    auto narrowest = std::ranges::min_element(walks, {}, &Walk::pages);
    if (narrowest != walks.end() && std::ranges::find(walks, site, &Walk::site) == walks.end())
      site = narrowest->site;
    lane.last_pages[site] = fault.page;
    return site;
  }

  // A place with a sample before the page and one behind it, so many pages apart.
  struct Walk {
    std::uint32_t site;
    std::uint64_t pages;
  };
  // Of the places that were sampled about then: where each was last, and where it is next.
  static std::vector<Walk> walks_around(const Lane& lane, std::uint64_t page) {
    std::vector<std::uint32_t> looked_at;
    std::vector<Walk> walks;
    for (std::size_t i = lane.at; i-- > 0 && lane.at - i <= kLookAround;) {
      const Sampled& sample = lane.samples[i];
      if (std::ranges::find(looked_at, sample.site) != looked_at.end()) continue;  // its next is not to come any more
      looked_at.push_back(sample.site);
      auto [first, last] = std::minmax(sample.page, sample.next_page);
      if (first <= page && page <= last && last - first <= kBetweenPages)
        walks.push_back({sample.site, last - first});
    }
    return walks;
  }

  static std::uint64_t apart(std::uint64_t a, std::uint64_t b) { return std::max(a, b) - std::min(a, b); }

  std::uint32_t of_its_time(Lane& lane, const FaultRecord& fault) {
    const Sampled& after = lane.samples[std::min(lane.at, lane.samples.size() - 1)];
    const Sampled& before = lane.samples[lane.at > 0 ? lane.at - 1 : 0];
    std::uint32_t site = before.site;
    if (before.site != after.site) {
      std::uint64_t one = apart(lane.last_pages[before.site], fault.page);
      std::uint64_t other = apart(lane.last_pages[after.site], fault.page);
      bool goes_on = std::min(one, other) <= kNearPages && one != other;
      site = (goes_on ? one < other : random_() % (before.weight + after.weight) < before.weight) ? before.site
                                                                                                  : after.site;
    }
    return site;
  }

  std::map<LaneKey, Lane> lanes_;
  std::array<Lane, kFaultKinds> any_;  // of all threads, for those that have no sample
  std::minstd_rand random_;            // the same for the same trace
};

}  // namespace

std::string FaultSite::name() const {
  if (file.empty() || line == 0) return without_arguments(function);
  std::string place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
  if (column > 0) place += ":" + std::to_string(column);
  return place + " " + without_arguments(function);
}

FaultSites find_fault_sites(const TraceFile& trace, Symbols& symbols, std::uint64_t faults_max) {
  FaultSites result;
  std::map<std::tuple<std::string, int, int, std::string>, std::uint32_t> index;
  std::vector<std::uint32_t> site_of_stack(trace.stacks.size(), FaultSites::kNone);
  std::vector<std::uint64_t> samples_of_stack(trace.stacks.size());
  for (const StackSample& sample : trace.samples) ++samples_of_stack[sample.stack];
  std::unordered_map<std::uint32_t, std::size_t> commonest;  // stack, by site
  for (std::size_t i = 0; i < trace.stacks.size(); ++i) {
    Place place = place_of(trace.stacks[i], symbols);
    if (place.frame == nullptr) continue;
    const Frame& frame = *place.frame;
    std::string function = frame.line > 0 ? "" : frame.function;  // copies of one line are one place
    auto [at, fresh] = index.try_emplace({frame.file, frame.line, frame.column, function}, result.sites.size());
    if (fresh)
      result.sites.push_back(
          {frame.function, frame.file, frame.module, place.via, frame.line, frame.column, place.address, 0, {}});
    FaultSite& site = result.sites[at->second];
    site.samples += samples_of_stack[i];
    if (fresh || samples_of_stack[i] > samples_of_stack[commonest[at->second]]) {
      commonest[at->second] = i;
      site.code_address = place.address;
    }
    site_of_stack[i] = at->second;
  }
  for (auto [number, stack] : commonest) {
    FaultSite& site = result.sites[number];
    const std::vector<std::uint64_t>& all = trace.stacks[stack].addresses;
    auto own = std::find(all.begin(), all.end(), site.code_address);
    if (own != all.end() && samples_of_stack[stack] * 2 >= site.samples) site.callers.assign(own + 1, all.end());
  }
  Matcher matcher(trace, site_of_stack);
  std::uint64_t known = 0, number = 0;
  trace.for_each_fault([&](const FaultRecord& fault) {
    if (number++ >= faults_max) return;
    bool own = false;
    bool serves = fault.kind <= FaultKind::refault;  // the rest: another fault brought the page
    result.of_fault.push_back(serves ? matcher.site_of(fault, &own) : FaultSites::kNone);
    known += own;
  });
  if (!result.of_fault.empty())
    result.with_stack = static_cast<double>(known) / static_cast<double>(result.of_fault.size());
  return result;
}

}  // namespace hinterland::trace
