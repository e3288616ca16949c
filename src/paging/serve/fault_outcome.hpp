// What became of a fault in signal mode.
#pragma once

#include <cstdint>

namespace hinterland {

enum class FaultOutcome : std::uint8_t {
  served,   // touch it again
  foreign,  // what is mapped there is not ours: a file, for example
  lost,     // the page cannot be had
};

}  // namespace hinterland
