// Which sites of a program are worth it: counted by one run (--record-sites), read at the start of others.
// The text is described in base/site_profile_text.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/sites.hpp"

namespace hinterland::hint {

std::uint64_t identity_of(const SiteTable& table);

// Whether this process counts, because HINTERLAND_RECORD_SITES names a file. It is written when the process ends by
// exit(); %p in its name is the PID.
bool record_of_sites_wanted();

// What a profile says of one table.
enum class ProfileMatch : std::uint8_t { found, other_build, not_mentioned };
struct ReadProfile {
  ProfileMatch match = ProfileMatch::not_mentioned;
  std::vector<bool> on;  // of each site, when found
};
// Those are on that are worth it. `name`: of the module's file without its folder. The error says which line is none
// of a profile.
Result<ReadProfile> read_profile(std::string_view text, std::uint64_t identity, std::size_t sites,
                                 std::string_view name);

// For one module: all of its sites, or those that the profile names: HINTERLAND_SITES; or, of PROGRAM.sites beside
// the program and what `hinterland check` left in the user's cache, the newer one that knows this module. A profile
// that cannot be used is said once, and all sites are wanted.
class SiteChoice {
 public:
  explicit SiteChoice(const SiteTable& table);
  bool wants(std::uint32_t site) const { return all_ || on_[site]; }

 private:
  bool all_ = true;
  std::vector<bool> on_;
};

}  // namespace hinterland::hint
