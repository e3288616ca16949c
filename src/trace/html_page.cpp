#include "trace/html_page.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/size.hpp"
#include "policy/policies.hpp"
#include "trace/advice/hint_review.hpp"
#include "trace/exports.hpp"
#include "trace/hint_profile.hpp"
#include "trace/replay.hpp"

namespace hinterland::trace {

extern const char* const kPageTemplate;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSitesShown = 100, kSourceLines = 4;  // on either side of a line
constexpr std::uint64_t kReviewedFaultsMax = 2'000'000;
constexpr std::size_t kColumns = 300, kRows = 150;
constexpr double kSmallest = 1e-5;                    // share of faults below which stacks are not told apart
constexpr std::uint64_t kReplayedFaults = 5'000'000;  // a second or two for each point of the curve

// --- flame graph
// ------------------------------------------------------------------------------------------------------
struct Node {
  std::size_t frame = 0;
  std::array<double, kFaultKinds> faults{};
  double all = 0;
  std::vector<std::unique_ptr<Node>> children;
};

class Tree {
 public:
  Tree() { root_.frame = frame("all faults"); }
  void add(const std::vector<const Frame*>& frames, const CallStack& stack) {
    Node* node = &root_;
    add(*node, stack);
    for (const Frame* each : frames) {
      node = child(*node, frame(text_of(*each)));
      add(*node, stack);
    }
  }
  Json tree() { return json(root_, kSmallest * root_.all); }
  Json frames() const { return frames_; }

 private:
  static void add(Node& node, const CallStack& stack) {
    for (std::size_t i = 0; i < kFaultKinds; ++i) node.faults[i] += stack.faults[i];
    node.all += stack.all;
  }
  static std::string text_of(const Frame& frame) {
    std::string where = frame.file.empty() ? frame.module : frame.file + ":" + std::to_string(frame.line);
    return without_arguments(frame.function) + (frame.inlined ? " (inlined)" : "") +
           (where.empty() ? "" : " \u2014 " + where);
  }
  std::size_t frame(const std::string& text) {
    auto [at, fresh] = index_.try_emplace(text, frames_.size());
    if (fresh) frames_.push_back(text);
    return at->second;
  }
  static Node* child(Node& node, std::size_t frame) {
    for (auto& each : node.children)
      if (each->frame == frame) return each.get();
    node.children.push_back(std::make_unique<Node>());
    node.children.back()->frame = frame;
    return node.children.back().get();
  }
  static Json json(Node& node, double smallest) {
    std::sort(node.children.begin(), node.children.end(),
              [](const auto& a, const auto& b) { return a->all > b->all; });
    Json children = Json::array(), kinds = Json::array();
    for (auto& each : node.children)
      if (each->all >= smallest) children.push_back(json(*each, smallest));
    for (double faults : node.faults) kinds.push_back(std::llround(faults));
    return Json::array({node.frame, std::move(kinds), std::move(children)});
  }

  Node root_;
  Json frames_ = Json::array();
  std::unordered_map<std::string, std::size_t> index_;
};

// --- places
// -----------------------------------------------------------------------------------------------------------
Json source_around(const Site& site) {
  Json lines = Json::array();
  std::ifstream file(site.file);
  if (site.line == 0 || !file) return lines;
  std::string text;
  auto line = static_cast<std::size_t>(site.line);
  for (std::size_t number = 1; number <= line + kSourceLines && std::getline(file, text); ++number)
    if (number + kSourceLines >= line) lines.push_back({number, text.substr(0, 200)});
  return lines;
}

// What speaks against the program's hints, as far as it shows without a replay.
Json objections_json(const TraceFile& trace, Symbols& symbols) {
  SourceTree sources("");
  FaultSites sites = find_fault_sites(trace, symbols, kReviewedFaultsMax);
  HintReview review = review_hints(trace, symbols, sources, sites, costs_of(trace), {});
  Json objections = Json::array();
  for (const ReviewedHint& hint : review.hints)
    for (const HintObjection& objection : hint.objections)
      if (objections.size() < kSitesShown)
        objections.push_back({{"name", hint.name()},
                              {"fault", kHintFaultNames[static_cast<std::size_t>(objection.fault)]},
                              {"why", objection.why}});
  return objections;
}

// Of the program's hints: what share of its misses they cover, and which lines they are.
Json hints_json(const TraceFile& trace, Symbols& symbols) {
  HintProfile profile = make_hint_profile(trace, symbols);
  Json sites = Json::array();
  for (std::size_t i = 0; i < std::min(profile.sites.size(), kSitesShown); ++i) {
    const HintSite& site = profile.sites[i];
    sites.push_back({{"name", site.place.name()},
                     {"calls", site.calls},
                     {"pages", site.pages},
                     {"ahead", site.pages_ahead},
                     {"source", source_around(site.place)},
                     {"line", site.place.line}});
  }
  return {{"calls", profile.calls + profile.lost},
          {"covered", profile.coverage()},
          {"faults", profile.faults},
          {"noted", profile.only_noted},
          {"lost", profile.lost},
          {"sites", std::move(sites)},
          {"objections", profile.calls > 0 ? objections_json(trace, symbols) : Json::array()}};
}

std::string as_pattern(const std::string& text) {
  std::string pattern;
  for (char letter : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(letter) != std::string_view::npos) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

Json sites_json(const Profile& profile) {
  double all = 0;
  for (const Site& site : profile.sites) all += site.all;
  Json sites = Json::array();
  for (std::size_t i = 0; i < std::min(profile.sites.size(), kSitesShown); ++i) {
    const Site& site = profile.sites[i];
    auto most = std::max_element(site.via.begin(), site.via.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string where =
        site.file.empty() ? without_arguments(site.function) : site.file + ":" + std::to_string(site.line);
    sites.push_back({{"name", site.name()},
                     {"share", site.all / all},
                     {"faults", site.all},
                     {"kinds", site.faults},
                     {"latency", site.latency_ns},
                     {"via", most == site.via.end() ? "" : without_arguments(most->first)},
                     {"line", site.line},
                     {"pattern", as_pattern(where) + (site.file.empty() ? "" : "$")},
                     {"source", source_around(site)}});
  }
  return sites;
}

// --- where and when
// --------------------------------------------------------------------------------------------------- Rows are pages
// that faulted, in order of their addresses, so that a terabyte of nothing between two takes no room.
Json map_json(const TraceFile& trace) {
  std::vector<std::uint64_t> pages;
  std::uint64_t last_ns = 1;
  trace.for_each_fault([&](const FaultRecord& fault) {
    pages.push_back(fault.page);
    last_ns = std::max(last_ns, fault.time_ns);
  });
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  std::vector<std::array<std::uint32_t, kFaultKinds>> cells(kColumns * kRows);
  trace.for_each_fault([&](const FaultRecord& fault) {
    auto rank = static_cast<std::size_t>(std::lower_bound(pages.begin(), pages.end(), fault.page) - pages.begin());
    auto column =
        static_cast<std::size_t>(static_cast<double>(fault.time_ns) / static_cast<double>(last_ns) * (kColumns - 1));
    ++cells[column * kRows + rank * kRows / pages.size()][static_cast<std::size_t>(fault.kind)];
  });
  Json list = Json::array();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::uint64_t all = 0;
    for (std::uint32_t faults : cells[i]) all += faults;
    if (all == 0) continue;
    auto kind = std::max_element(cells[i].begin(), cells[i].end()) - cells[i].begin();
    list.push_back({i / kRows, i % kRows, kind, all});
  }
  return {{"columns", kColumns},
          {"rows", kRows},
          {"seconds", static_cast<double>(last_ns) / 1e9},
          {"cells", std::move(list)}};
}

// By powers of two: how many faults came between two fetches of the same page.
Json distances_json(const TraceFile& trace) {
  std::unordered_map<std::uint64_t, std::uint64_t> last;
  std::vector<std::uint64_t> bins;
  std::uint64_t number = 0;
  trace.for_each_fault([&](const FaultRecord& fault) {
    if (fault.kind > FaultKind::refault || fault.kind == FaultKind::write_protect) return;
    auto [at, fresh] = last.try_emplace(fault.page, ++number);
    if (fresh) return;
    auto bin = static_cast<std::size_t>(std::bit_width(number - at->second) - 1);
    if (bins.size() <= bin) bins.resize(bin + 1);
    ++bins[bin];
    at->second = number;
  });
  return bins;
}

// --- what more local memory would save
// ----------------------------------------------------------------------------------
Json curve_json(const TraceFile& trace) {
  Json points = Json::array();
  const hl_policy_ops* policy = find_policy(trace.process.policy.c_str());
  if (policy == nullptr || trace.process.local_bytes == 0) return points;
  for (double more : {1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0}) {
    auto local = static_cast<std::uint64_t>(static_cast<double>(trace.process.local_bytes) * more);
    Replay replay({local, policy, static_cast<std::uint32_t>(trace.process.read_ahead_pages)});
    std::uint64_t left = kReplayedFaults;
    trace.for_each_fault([&](const FaultRecord& fault) {
      if (left > 0) replay.fault(fault), --left;
    });
    points.push_back({local, replay.result().fetches});
    if (replay.result().fetches == 0) break;
  }
  return points;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

Json facts_json(const TraceFile& trace, const Profile& profile) {
  const ProcessFacts& process = trace.process;
  Json facts = {std::to_string(profile.faults_all) + " faults in " +
                    std::to_string(trace.summary.ended_ns / 1'000'000) + " ms, process " +
                    std::to_string(process.process_id) + ": local " + rounded_size_text(process.local_bytes) +
                    ", far " + process.far_url + ", policy " + process.policy + ", read-ahead " +
                    std::to_string(process.read_ahead_pages) + " pages",
                std::to_string(trace.samples.size()) + " stacks, " + percent(profile.whole_stacks) +
                    " complete; tracing took about " + percent(profile.tracing_cost) + " of the program's time; " +
                    std::to_string(trace.summary.faults_lost) + " faults and " +
                    std::to_string(trace.summary.samples_lost) + " stacks lost"};
  for (const std::string& remark : profile.remarks) facts.push_back(remark);
  return facts;
}

std::string cover_text(const Profile& profile) {
  std::string text = "Lines that cover";
  for (int percent : {50, 80, 95, 99})
    text += (percent == 50 ? " " : ", ") + std::to_string(percent) +
            " % of the faults: " + std::to_string(profile.sites_covering(percent / 100.0));
  return text + ". Click a line for its source, and to find it above.";
}

// In a script element nothing but "</script" and "<!--" ends the text: no '<' gets there.
std::string for_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6) json.replace(at, 1, "\\u003c");
  return json;
}

}  // namespace

std::string html_page(const TraceFile& trace, const Profile& profile, Symbols& symbols) {
  Tree tree;
  for (const CallStack& stack : profile.stacks) tree.add(frames_of(trace.stacks[stack.stack], symbols), stack);
  Json data = {{"program", trace.process.program},
               {"policy", trace.process.policy},
               {"facts", facts_json(trace, profile)},
               {"cover", cover_text(profile)},
               {"kinds", kFaultKindNames},
               {"faults", profile.faults},
               {"tree", tree.tree()},
               {"frames", tree.frames()},
               {"sites", sites_json(profile)},
               {"hints", hints_json(trace, symbols)},
               {"map", map_json(trace)},
               {"again", distances_json(trace)},
               {"curve", curve_json(trace)}};
  std::string page = kPageTemplate;
  std::string_view place = "@DATA@";
  std::size_t at = page.find(place);
  return page.replace(at, place.size(), for_script(data.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

}  // namespace hinterland::trace
