// The lists of the public header, under the names that the policies here use.
#pragma once

#include "hinterland/policy.hpp"

namespace hinterland {

using hl::policy::LinksOf;
using hl::policy::PageLink;
using hl::policy::PageLinks;
using hl::policy::PageList;

}  // namespace hinterland
