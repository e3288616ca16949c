// What the policies would let go next.
#pragma once

#include <vector>

#include "paging/page/policy_host.hpp"

namespace hinterland::testing {

// At most so many, in order; the policies hold them no longer.
inline std::vector<hl_page> victims_of(PolicyHost& host, std::size_t most) {
  std::vector<hl_page> victims(most);
  victims.resize(host.choose_victims(victims));
  return victims;
}

}  // namespace hinterland::testing
