#include "cli/hint_report.hpp"

#include <algorithm>
#include <cstdio>

namespace hinterland::cli {
namespace {

using trace::HintProfile;
using trace::HintSite;

double per_call(double pages, const HintSite& site) { return pages / std::max(site.calls, 1.0); }

std::string head_text(const HintProfile& profile) {
  char line[256];
  std::snprintf(line, sizeof line,
                profile.only_noted
                    ? "\n%llu hints on missing pages were noted and not followed: they foresaw %.1f %% "
                      "of the %llu faults that hints can spare\n"
                    : "\n%llu hints fetched: hint coverage %.1f %% of the pages that the program missed; "
                      "%llu faults were left that hints can spare\n",
                static_cast<unsigned long long>(profile.calls), profile.coverage() * 100,
                static_cast<unsigned long long>(profile.faults));
  std::string text = line;
  if (profile.lost != 0)
    text += std::to_string(profile.lost) +
            " further hints are not in the trace, because the recorder did not keep up: estimated from the others\n";
  return text;
}

std::string words_of(const HintSite& site) {
  return std::string(site.write ? ", mut" : "") + (site.sequential ? ", seq" : "") +
         (site.priority > 0 ? ", ev_prio " + std::to_string(site.priority) : "");
}

}  // namespace

std::string hints_text(const HintProfile& profile, std::uint64_t top) {
  if (profile.calls == 0) return "";
  std::string text = head_text(profile) + "  share     hints  pages each  ahead each  hint\n";
  double all = static_cast<double>(profile.calls + profile.lost);
  for (std::size_t i = 0; i < std::min<std::size_t>(profile.sites.size(), top); ++i) {
    const HintSite& site = profile.sites[i];
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "%5.1f %% %9.0f  %10.1f  %10.1f  ", site.calls / all * 100, site.calls,
                  per_call(site.pages, site), per_call(site.pages_ahead, site));
    text += numbers + site.place.name() + words_of(site) + "\n";
  }
  return text;
}

Json hints_json(const HintProfile& profile, std::uint64_t top) {
  Json sites = Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(profile.sites.size(), top); ++i) {
    const HintSite& site = profile.sites[i];
    sites.push_back({{"function", site.place.function},
                     {"file", site.place.file.empty() ? Json(nullptr) : Json(site.place.file)},
                     {"line", site.place.line > 0 ? Json(site.place.line) : Json(nullptr)},
                     {"hints", site.calls},
                     {"samples", site.place.samples},
                     {"pages", site.pages},
                     {"pages_ahead", site.pages_ahead},
                     {"mut", site.write},
                     {"seq", site.sequential},
                     {"ev_prio", site.priority}});
  }
  return {{"hints", profile.calls},
          {"followed", !profile.only_noted},
          {"pages", profile.pages},
          {"pages_ahead", profile.pages_ahead},
          {"hints_lost", profile.lost},
          {"faults_spareable", profile.faults},
          {"coverage_share", profile.coverage()},
          {"sites", std::move(sites)}};
}

}  // namespace hinterland::cli
