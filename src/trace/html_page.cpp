#include "trace/html_page.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <span>
#include <sstream>
#include <unordered_map>

#include "base/json.hpp"
#include "base/plain_file.hpp"
#include "base/size.hpp"
#include "trace/flame_graph.hpp"
#include "trace/hint_profile.hpp"
#include "trace/memory_curve.hpp"

namespace hinterland::trace {

extern const char* const kPageTemplate;

namespace {

constexpr std::size_t kSitesShown = 100, kSourceLines = 4;  // on either side of a line
constexpr std::uint64_t kSourceBytesMax = 64 << 20;
constexpr std::size_t kColumns = 300, kRows = 150;
constexpr std::uint64_t kReplayedFaults = 5'000'000;  // a second or two for each point of the curve

// --- places
// -----------------------------------------------------------------------------------------------------------
Json source_around(const Site& site) {
  Json lines = Json::array();
  if (site.line == 0) return lines;
  std::istringstream file(read_plain_file(site.file, "the source", kSourceBytesMax).value_or(""));
  std::string text;
  auto line = static_cast<std::size_t>(site.line);
  for (std::size_t number = 1; number <= line + kSourceLines && std::getline(file, text); ++number)
    if (number + kSourceLines >= line) lines.push_back({number, text.substr(0, 200)});
  return lines;
}

Json remarks_json(const std::vector<HintRemark>& remarks) {
  Json all = Json::array();
  for (const HintRemark& remark : std::span(remarks).first(std::min(remarks.size(), kSitesShown)))
    all.push_back({{"name", remark.hint}, {"fault", remark.fault}, {"why", remark.why}});
  return all;
}

// Of the program's hints: what share of its misses they cover, and which lines they are.
Json hints_json(const TraceFile& trace, Symbols& symbols, const RemarksOnHints& remarks) {
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
          {"objections", profile.calls > 0 ? remarks_json(remarks(trace, symbols)) : Json::array()}};
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
  for (const CurvePoint& point : memory_curve(trace, kReplayedFaults))
    points.push_back({point.local_bytes, point.fetches});
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
std::string for_script(const Json& data) {
  std::string json = data.dump(), text;
  text.reserve(json.size());
  for (char letter : json)
    if (letter == '<')
      text += "\\u003c";
    else
      text += letter;
  return text;
}

}  // namespace

std::string html_page(const TraceFile& trace, const Profile& profile, Symbols& symbols,
                      const RemarksOnHints& remarks) {
  std::string data = "{";
  auto add = [&](const char* name, const std::string& json) {
    data += std::string(data.size() > 1 ? ",\n\"" : "\"") + name + "\":" + json;
  };
  add("program", for_script(trace.process.program));
  add("policy", for_script(trace.process.policy));
  add("facts", for_script(facts_json(trace, profile)));
  add("cover", for_script(cover_text(profile)));
  add("kinds", for_script(kFaultKindNames));
  add("faults", for_script(profile.faults));
  add("sites", for_script(sites_json(profile)));
  add("hints", for_script(hints_json(trace, symbols, remarks)));
  add("map", for_script(map_json(trace)));
  add("again", for_script(distances_json(trace)));
  add("curve", for_script(curve_json(trace)));
  add("replayed", for_script(std::min(profile.faults_all, kReplayedFaults)));
  {
    FlameGraph graph = make_flame_graph(trace, profile, symbols);  // by far the largest: written as text at once
    add("frames", for_script(graph.frames));
    add("tree", graph.tree);
  }
  std::string_view page = kPageTemplate, place = "@DATA@";
  std::size_t at = page.find(place);
  return std::string(page.substr(0, at)).append(data).append("}").append(page.substr(at + place.size()));
}

}  // namespace hinterland::trace
