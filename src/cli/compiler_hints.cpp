#include "cli/compiler_hints.hpp"

#include <algorithm>

namespace hinterland::cli {

std::string compiler_hints_text(const trace::SitePlaces& places, const trace::Site& place) {
  constexpr std::size_t kNamed = 4;
  if (!places.has_hints(place.module)) return "";
  const std::vector<trace::PlacedSite>& sites = places.at(place);
  if (sites.empty()) return "  [no hint]";
  std::string text = sites.size() == 1 ? "  [hint " : "  [hints ";
  for (std::size_t i = 0; i < std::min(sites.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(sites[i].number);
    // Once for all that are alike.
    const bool last = i + 1 == std::min(sites.size(), kNamed);
    if (last || sites[i + 1].entry.form != sites[i].entry.form)
      text += std::string(" ") + trace::text_of(sites[i].entry.form);
  }
  return text + (sites.size() > kNamed ? ", ...]" : "]");
}

Json compiler_hints_json(const trace::SitePlaces& places, const trace::Site& place) {
  if (!places.has_hints(place.module)) return nullptr;
  Json list = Json::array();
  for (const trace::PlacedSite& site : places.at(place))
    list.push_back(
        {{"number", site.number}, {"writes", site.entry.writes}, {"how", trace::text_of(site.entry.form)}});
  return list;
}

}  // namespace hinterland::cli
