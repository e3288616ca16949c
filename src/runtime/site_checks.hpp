// What the calls of sites reach: entries that keep all registers but r11 and the flags, so that a hint costs the
// program no register. The address is in r11; a length, where there is one, in r10.
#pragma once

#include <span>

#include "runtime/sites.hpp"

namespace hinterland::hint {

using Check = void (*)();

// By kind. They look at the map, and go on where a page is missing.
std::span<const Check, kSiteKinds> checks();
// The same, which also count each pass at its site: for a profile, some fifty times slower.
std::span<const Check, kSiteKinds> counting_checks();

}  // namespace hinterland::hint
