#include "base/duration.hpp"

#include <charconv>
#include <cstdio>

namespace hinterland {
namespace {

struct Unit {
  std::string_view name;
  double ns;
};
constexpr Unit kUnits[] = {{"h", 3600e9}, {"m", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
constexpr double kMaxNs = 1000 * 3600e9;

std::unexpected<Error> malformed(std::string_view text, std::string_view what) {
  Error error = Error::make(0, "%.*s: '%.*s' is not a time", static_cast<int>(what.size()), what.data(),
                            static_cast<int>(text.size()), text.data());
  return std::unexpected(error.remedy("write a number and a unit, as in 5s, 250ms or 2m"));
}

}  // namespace

Result<std::uint64_t> parse_duration_ns(std::string_view text, std::string_view what) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [after, problem] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (problem != std::errc() || !(number >= 0)) return malformed(text, what);
  std::string_view unit(after, static_cast<std::size_t>(end - after));
  double ns = unit.empty() ? number * 1e9 : -1;
  for (const Unit& known : kUnits)
    if (unit == known.name) ns = number * known.ns;
  if (ns < 0 || ns > kMaxNs) return malformed(text, what);
  return static_cast<std::uint64_t>(ns + 0.5);
}

std::string duration_text(std::uint64_t ns) {
  if (ns < 1000) return std::to_string(ns) + " ns";
  double value = static_cast<double>(ns);
  for (std::size_t i = 2; i < std::size(kUnits); ++i) {  // from seconds down
    if (value < kUnits[i].ns) continue;
    double scaled = value / kUnits[i].ns;
    char text[48];
    std::snprintf(text, sizeof text, "%.*f %s",
                  scaled < 10    ? 2
                  : scaled < 100 ? 1
                                 : 0,
                  scaled, kUnits[i].name.data());
    return text;
  }
  return std::to_string(ns) + " ns";
}

}  // namespace hinterland
