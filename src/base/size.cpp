#include "base/size.hpp"

#include <array>
#include <cctype>
#include <cstdio>
#include <optional>

namespace hinterland {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view kForms = "give bytes or a number with K, M, G or T, for example 64M, 1.5G or 4096";

// Digits beyond these cannot change a byte count below kSizeMax.
constexpr int kFractionDigits = 18;

struct Decimal {
  Wide whole = 0;
  Wide fraction = 0;  // of scale
  Wide scale = 1;
  bool too_large = false;
};

// Takes "12.5" off the front of `text`; nothing when there is no number.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal value;
  std::size_t at = 0, digits = 0;
  auto digit = [&] { return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; };
  for (; digit(); ++at, ++digits) {
    if (value.whole <= kSizeMax) value.whole = value.whole * 10 + static_cast<unsigned>(text[at] - '0');
    value.too_large = value.whole > kSizeMax;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    int kept = 0;
    for (; digit(); ++at, ++digits) {
      if (kept++ >= kFractionDigits) continue;
      value.fraction = value.fraction * 10 + static_cast<unsigned>(text[at] - '0');
      value.scale *= 10;
    }
  }
  if (digits == 0 || text[at - 1] == '.') return std::nullopt;
  text.remove_prefix(at);
  return value;
}

// Bytes in the unit; 0 when it is none.
std::uint64_t unit_bytes(std::string_view unit) {
  std::string lower;
  for (char letter : unit) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (lower.empty() || lower == "b") return 1;
  static constexpr std::string_view kLetters = "kmgt";
  std::size_t power = kLetters.find(lower[0]);
  if (power == std::string_view::npos) return 0;
  std::string_view rest = std::string_view(lower).substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return 0;
  return std::uint64_t{1} << (10 * (power + 1));
}

std::unexpected<Error> refuse(std::string_view text, std::string_view what, const char* why) {
  Error error = Error::make(0, "%.*s: '%.*s' %s", static_cast<int>(what.size()), what.data(),
                            static_cast<int>(std::min<std::size_t>(text.size(), 100)), text.data(), why);
  error.remedy("%.*s", static_cast<int>(kForms.size()), kForms.data());
  return std::unexpected(error);
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text, std::string_view what) {
  if (text.empty()) return refuse(text, what, "is empty, a size is needed");
  if (text[0] == '-') return refuse(text, what, "is negative, a size must be more than 0");
  std::string_view rest = text;
  if (rest[0] == '+') rest.remove_prefix(1);
  auto number = take_decimal(rest);
  if (!number) return refuse(text, what, "is not a size");
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  std::uint64_t unit = unit_bytes(rest);
  if (unit == 0) return refuse(text, what, "is not a size");
  if (unit == 1 && number->fraction != 0) return refuse(text, what, "has a fraction of a byte");
  Wide bytes = number->whole * unit + number->fraction * unit / number->scale;
  if (number->too_large || bytes > kSizeMax) return refuse(text, what, "is beyond the address space (128T)");
  if (bytes == 0) return refuse(text, what, "is 0, a size must be more than 0");
  return static_cast<std::uint64_t>(bytes);
}

std::string exact_size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return std::to_string(bytes) + kUnits[unit];
}

std::string rounded_size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 would be printed as 1000: four digits
  while (value >= 999.5 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, kUnits[unit]);
  return text;
}

}  // namespace hinterland
