// What the preloaded library and `hinterland run` agree on: the options of the table that reach the program.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/parts.hpp"

namespace hinterland {

struct Settings {
  std::uint64_t local_bytes = 0;
  std::string far_url;
  std::string policy;  // what --policy says (src/policy/plugin.hpp)
  std::uint32_t read_ahead_pages = 0;
  std::uint64_t window_bytes = 0;
  Addresses addresses = Addresses::automatic;
  bool take_over_at_start = false;  // else when the budget is nearly used
  enum class Take : std::uint8_t { automatic, move, protect } take = Take::automatic;
  bool faults_by_signal = false;  // else by message
  std::string key_file;           // "" for none
  std::uint64_t timeout_ns = 0;
  // Kernel features that must not be used, though they are there.
  bool without_write_protect = false, without_move = false, without_poison = false, without_vectored_discard = false;
  Parts parts;  // of the runtime
  Reclaim reclaim = Reclaim::adaptive;
  std::string core;   // pattern of the core file to write when a signal ends the program; "" for none
  int verbosity = 0;  // -1 quiet, 0 warnings, 1 what is going on, 2 for debugging
};

// From the HINTERLAND_* variables, and the table's defaults for those that are not set. Throws nothing; allocates
// little. The first variable that is wrong is the error (code 0).
Result<Settings> settings_from_environment();

}  // namespace hinterland
