// What `hinterland report` says of the hints that the compiler put at a place.
#pragma once

#include <string>

#include "base/json.hpp"
#include "trace/site_places.hpp"

namespace hinterland::cli {

// "  [hint 17 in strips of 64 pages]", "  [no hint]"; "" where the place's file has none at all.
std::string compiler_hints_text(const trace::SitePlaces& places, const trace::Site& place);
// A list, or null where the file has none at all.
Json compiler_hints_json(const trace::SitePlaces& places, const trace::Site& place);

}  // namespace hinterland::cli
