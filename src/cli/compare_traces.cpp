#include "cli/compare_traces.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/size.hpp"

namespace hinterland::cli {
namespace {

constexpr double kCovered = 0.95;

// A place, with its share in each trace, and whether it is among those that cover 95 % there.
struct ComparedPlace {
  const trace::Site* site = nullptr;
  std::vector<double> shares;
  std::vector<bool> covers;
  bool stable() const {
    return std::all_of(covers.begin(), covers.end(), [](bool each) { return each; });
  }
};

struct Comparison {
  std::vector<ComparedPlace> places;  // that cover 95 % in any trace; largest share first
  std::vector<std::size_t> covering;  // places, in each trace
  std::vector<double> of_the_first;   // share of the first trace's places that cover in this one, too
};

Comparison compare(const std::vector<ComparedTrace>& traces) {
  using Key = std::tuple<std::string, std::string, int>;
  std::map<Key, ComparedPlace> places;
  Comparison comparison;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const trace::Profile& profile = traces[i].profile;
    double all = 0;
    for (const trace::Site& site : profile.sites) all += site.all;
    comparison.covering.push_back(profile.sites_covering(kCovered));
    for (std::size_t rank = 0; rank < profile.sites.size(); ++rank) {
      const trace::Site& site = profile.sites[rank];
      ComparedPlace& place = places[{site.file, site.line > 0 ? "" : site.function, site.line}];
      place.shares.resize(traces.size());
      place.covers.resize(traces.size());
      if (place.site == nullptr) place.site = &site;
      place.shares[i] += all > 0 ? site.all / all : 0;
      if (rank < comparison.covering[i]) place.covers[i] = true;
    }
  }
  for (auto& [key, place] : places)
    if (std::find(place.covers.begin(), place.covers.end(), true) != place.covers.end())
      comparison.places.push_back(std::move(place));
  std::stable_sort(comparison.places.begin(), comparison.places.end(), [](const auto& a, const auto& b) {
    return *std::max_element(a.shares.begin(), a.shares.end()) > *std::max_element(b.shares.begin(), b.shares.end());
  });
  for (std::size_t i = 0; i < traces.size(); ++i) {
    double both = 0, first = 0;
    for (const ComparedPlace& place : comparison.places) {
      first += place.covers[0];
      both += place.covers[0] && place.covers[i];
    }
    comparison.of_the_first.push_back(first > 0 ? both / first : 0);
  }
  return comparison;
}

}  // namespace

std::string comparison_text(const std::vector<ComparedTrace>& traces, const std::string& what, std::uint64_t top) {
  Comparison comparison = compare(traces);
  char text[256];
  std::string out;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::snprintf(text, sizeof text, "(%zu) %s: %s local, %llu faults; %zu %ss cover 95 %%", i + 1,
                  traces[i].path.c_str(), rounded_size_text(traces[i].local_bytes).c_str(),
                  static_cast<unsigned long long>(traces[i].profile.faults_all), comparison.covering[i],
                  what.c_str());
    out += text;
    if (i > 0) {
      std::snprintf(text, sizeof text, "; %.0f %% of those of (1) do here", comparison.of_the_first[i] * 100);
      out += text;
    }
    out += "\n";
  }
  out += "\n";
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::snprintf(text, sizeof text, "%8s", ("(" + std::to_string(i + 1) + ")").c_str());
    out += text;
  }
  out += "  place\n";
  for (std::size_t rank = 0; rank < std::min<std::size_t>(comparison.places.size(), top); ++rank) {
    const ComparedPlace& place = comparison.places[rank];
    for (double share : place.shares) {
      std::snprintf(text, sizeof text, "%6.1f %%", share * 100);
      out += text;
    }
    out += (place.stable() ? "  " : "  (not in all) ") + place.site->name() + "\n";
  }
  return out;
}

Json comparison_json(const std::vector<ComparedTrace>& traces, const std::string& what, std::uint64_t top) {
  Comparison comparison = compare(traces);
  Json list = Json::array(), places = Json::array();
  for (std::size_t i = 0; i < traces.size(); ++i)
    list.push_back({{"file", traces[i].path},
                    {"budget_bytes", traces[i].local_bytes},
                    {"faults", traces[i].profile.faults_all},
                    {"places_covering_95_percent", comparison.covering[i]},
                    {"share_of_the_first_ones", comparison.of_the_first[i]}});
  for (std::size_t rank = 0; rank < std::min<std::size_t>(comparison.places.size(), top); ++rank) {
    const ComparedPlace& place = comparison.places[rank];
    places.push_back({{"function", place.site->function},
                      {"file", place.site->file.empty() ? Json(nullptr) : Json(place.site->file)},
                      {"line", place.site->line > 0 ? Json(place.site->line) : Json(nullptr)},
                      {"shares", place.shares},
                      {"covers", place.covers},
                      {"stable", place.stable()}});
  }
  return {
      {"schema_version", kSchemaVersion}, {"by", what}, {"traces", std::move(list)}, {"places", std::move(places)}};
}

}  // namespace hinterland::cli
