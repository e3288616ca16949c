#include "cli/check/check_report.hpp"

#include <algorithm>

#include "base/size.hpp"
#include "cli/figures.hpp"
#include "cli/formatted.hpp"

namespace hinterland::cli {
namespace {

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

const char* word_of(const CheckFound& found, const CheckedGroup& group) {
  switch (group.verdict()) {
    case Verdict::gains:
      return "gains";
    case Verdict::loses:
      return found.is_dropped(group) ? "dropped" : "loses";
    case Verdict::not_known:
      break;
  }
  return "stays";
}

std::string effect_text(const Effect& effect) {
  return formatted("%+.1f %% (+- %.1f %%)", effect.share() * 100, effect.deviation_share() * 100);
}

// The place of one, or how many there are and where those are that are passed most.
std::string places_of(const CheckFound& found, const CheckedGroup& group) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::size_t> order = group.sites;
  const auto& sites = found.checked.sites;
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return sites[a].counted.passes > sites[b].counted.passes; });
  if (order.size() == 1) return sites[order[0]].place.name();
  std::string text = std::to_string(order.size()) + " hints: ";
  for (std::size_t i = 0; i < std::min(order.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + sites[order[i]].place.name();
  return order.size() > kNamed ? text + ", ..." : text;
}

std::uint64_t sites_worth_it(const CheckFound& found) {
  return static_cast<std::uint64_t>(std::ranges::count_if(found.checked.sites, &CheckedSite::is_worth_it));
}

std::string head_text(const CheckFound& found) {
  std::string text = formatted("%s: of %llu hints %zu were passed, and the profile leaves %llu on",
                               found.program.c_str(), static_cast<unsigned long long>(found.checked.sites_in_all()),
                               found.checked.sites.size(), static_cast<unsigned long long>(sites_worth_it(found)));
  if (found.groups.empty()) return text + "\n";
  text += formatted(", which were measured in %zu groups\n", found.groups.size());
  return text + formatted("%llu pairs of runs, %.2f s each by the %s clock; %s local, far %s\n\n",
                          static_cast<unsigned long long>(found.pairs), middle_of(found.pair_seconds),
                          found.clock.c_str(), rounded_size_text(found.local_bytes).c_str(), found.far_url.c_str());
}

std::string row_text(const CheckFound& found, const CheckedGroup& group) {
  const site_profile::Site sum = group.sum(found.checked);
  return formatted("%+8.1f %% %7.1f %% %14llu %11llu  %-8s ", group.effect.share() * 100,
                   group.effect.deviation_share() * 100, static_cast<unsigned long long>(sum.passes),
                   static_cast<unsigned long long>(sum.misses), word_of(found, group)) +
         places_of(found, group) + "\n";
}

std::string times_text(const CheckFound& found) {
  std::string text;
  for (const CheckedWay& way : found.ways)
    text += (text.empty() ? "" : ", ") + formatted("%s %.2f s", way.name.c_str(), way.median_s());
  return text;
}

Json group_json(const CheckFound& found, const CheckedGroup& group) {
  Json sites = Json::array();
  for (std::size_t index : group.sites) {
    const CheckedSite& site = found.checked.sites[index];
    sites.push_back({{"module", found.checked.modules[site.module].path},
                     {"number", site.counted.number},
                     {"function", site.place.function},
                     {"file", site.place.file.empty() ? Json(nullptr) : Json(site.place.file)},
                     {"line", site.place.line > 0 ? Json(site.place.line) : Json(nullptr)},
                     {"passes", site.counted.passes},
                     {"misses", site.counted.misses}});
  }
  return {{"on_costs_share", group.effect.share()},
          {"standard_deviation_share", group.effect.deviation_share()},
          {"verdict", word_of(found, group)},
          {"sites", std::move(sites)}};
}

}  // namespace

site_profile::Site CheckedGroup::sum(const CheckedSites& checked) const {
  site_profile::Site sum;
  for (std::size_t index : sites) {
    sum.passes += checked.sites[index].counted.passes;
    sum.misses += checked.sites[index].counted.misses;
  }
  return sum;
}

double CheckedWay::median_s() const { return middle_of(seconds); }

std::vector<bool> CheckFound::on() const {
  std::vector<bool> on(checked.sites.size(), false);
  for (const CheckedGroup& group : groups)
    if (!is_dropped(group))
      for (std::size_t site : group.sites) on[site] = true;
  return on;
}

std::uint64_t CheckFound::dropped_sites() const {
  std::uint64_t sum = 0;
  for (const CheckedGroup& group : groups) sum += is_dropped(group) ? group.sites.size() : 0;
  return sum;
}

std::string CheckFound::why_off(std::size_t site) const {
  for (const CheckedGroup& group : groups)
    if (std::ranges::find(group.sites, site) != group.sites.end())
      return "dropped: on costs " + effect_text(group.effect);
  return "its page was hardly ever missing";
}

std::vector<std::string> check_sentences(const CheckFound& found) {
  std::vector<std::string> lines;
  if (found.groups.empty()) {
    lines.push_back(
        "No hint found its page missing once in a thousand passes: all are off, and nothing was measured.");
  } else if (found.taken_back) {
    lines.push_back(
        "Some lose one by one, but without all of these the program is slower: the profile's choice stands.");
  } else if (const std::uint64_t dropped = found.dropped_sites(); dropped != 0) {
    lines.push_back(formatted("%llu of %llu hints lose by more than three standard deviations and are off.",
                              static_cast<unsigned long long>(dropped),
                              static_cast<unsigned long long>(sites_worth_it(found))));
  } else {
    lines.push_back("No group of hints loses by more than three standard deviations: the profile's choice stands.");
  }
  if (!found.ways.empty()) lines.push_back("Medians of runs in turn: " + times_text(found) + ".");
  if (found.read_by_run)
    lines.push_back("Written to " + found.path + ", which 'hinterland run' reads.");
  else if (!found.path.empty())
    lines.push_back("Written to " + found.path + ": hinterland run --sites " + found.path + " -- ...");
  return lines;
}

std::string check_text(const CheckFound& found) {
  std::string text = head_text(found);
  if (!found.groups.empty()) {
    text += " on costs  deviation         passes      misses  verdict  hint\n";
    for (const CheckedGroup& group : found.groups) text += row_text(found, group);
  }
  text += "\n";
  for (const std::string& line : check_sentences(found)) text += line + "\n";
  return text;
}

Json check_json(const CheckFound& found) {
  Json groups = Json::array(), ways = Json::array(), sentences = Json::array();
  for (const CheckedGroup& group : found.groups) groups.push_back(group_json(found, group));
  for (const CheckedWay& way : found.ways)
    ways.push_back({{"name", way.name}, {"runs_s", way.seconds}, {"median_s", way.median_s()}});
  for (const std::string& line : check_sentences(found)) sentences.push_back(line);
  return {{"schema_version", kSchemaVersion},
          {"program", found.program},
          {"local_bytes", found.local_bytes},
          {"far_url", found.far_url},
          {"clock", found.clock},
          {"pairs", found.pairs},
          {"run_median_s", middle_of(found.pair_seconds)},
          {"sites", found.checked.sites_in_all()},
          {"sites_passed", found.checked.sites.size()},
          {"sites_of_the_profile", sites_worth_it(found)},
          {"sites_dropped", found.dropped_sites()},
          {"taken_back", found.taken_back},
          {"groups", std::move(groups)},
          {"ways", std::move(ways)},
          {"written_to", found.path},
          {"verdict", std::move(sentences)}};
}

}  // namespace hinterland::cli
