// What the policies would let go next.
#pragma once

#include <vector>

#include "paging/page/policy_host.hpp"

namespace hinterland::testing {

// The indexes of at most so many, in order; the policies hold them no longer.
inline std::vector<hl_page> victims_of(PolicyHost& host, std::size_t most) {
  std::vector<hl_page> victims(most);
  victims.resize(host.choose_victims(victims));
  for (hl_page& victim : victims) victim = static_cast<hl_page>(host.page_of(victim).value);
  return victims;
}

}  // namespace hinterland::testing
