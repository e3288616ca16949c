// Times as people write them: "5s", "250ms", "1.5us", "2m".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland {

// A number with an optional fraction and a unit (ns, us, ms, s, m, h; none means seconds), in nanoseconds. Not
// negative, at most 1000 hours. `what` names the option in the error, whose code is 0.
Result<std::uint64_t> parse_duration_ns(std::string_view text, std::string_view what = "duration");

// For people: "5 s", "1.50 ms", "0 ns".
std::string duration_text(std::uint64_t ns);

}  // namespace hinterland
