#include "base/options.hpp"

#include <array>
#include <cctype>
#include <charconv>

#include "base/available_memory.hpp"
#include "base/duration.hpp"
#include "base/policy_names.hpp"
#include "base/size.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr std::uint64_t kTiB = 1024 * kGiB;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kS = 1000 * kMs;

using enum OptionType;
using enum Elsewhere;

#define X(table, name) "|" name
constexpr const char* kPolicyNames = &HL_POLICIES(X)[1];
#undef X

}  // namespace

// In the order of OptionId, which is made of the same rows.
constexpr Option kTable[] = {
#define HL_OPTION(id, ...) {__VA_ARGS__},
#include "base/options.inc"
#undef HL_OPTION
};

std::span<const Option> all_options() { return kTable; }
const Option& option(OptionId id) { return kTable[static_cast<std::size_t>(id)]; }

std::string variable_name(const Option& option) {
  std::string name = "HINTERLAND_";
  for (const char* at = option.name; *at != '\0'; ++at)
    name += *at == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*at)));
  return name;
}

std::vector<std::string_view> choices_of(const Option& option) {
  std::vector<std::string_view> names;
  std::string_view rest = option.choices;
  while (!rest.empty()) {
    std::size_t bar = std::min(rest.find('|'), rest.size());
    names.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return names;
}

namespace {

// Arguments for "%.*s".
#define HL_TEXT(view) static_cast<int>(std::min<std::size_t>((view).size(), 100)), (view).data()

std::string number_text(const Option& option, std::uint64_t value) {
  if (option.type == duration) return duration_text(value);
  if (option.type == size || option.type == size_or_percent) return exact_size_text(value);
  return std::to_string(value);
}

Result<std::uint64_t> in_range(const Option& option, Result<std::uint64_t> value, std::string_view text,
                               std::string_view source) {
  if (!value || (*value >= option.minimum && *value <= option.maximum)) return value;
  bool small = *value < option.minimum;
  Error error = Error::make(0, "%.*s: %.*s is too %s", HL_TEXT(source), HL_TEXT(text), small ? "small" : "large");
  error.remedy("%s is %s; for example %s", small ? "the minimum" : "the maximum",
               number_text(option, small ? option.minimum : option.maximum).c_str(), option.example);
  return std::unexpected(error);
}

Result<std::uint64_t> parse_integer(const Option& option, std::string_view text, std::string_view source) {
  std::uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && end == text.data() + text.size()) return value;
  Error error = Error::make(0, "%.*s: '%.*s' is not a whole number", HL_TEXT(source), HL_TEXT(text));
  error.remedy("give %llu to %llu, for example %s", static_cast<unsigned long long>(option.minimum),
               static_cast<unsigned long long>(option.maximum), option.example);
  return std::unexpected(error);
}

Result<std::uint64_t> parse_percent(std::string_view text, std::string_view source) {
  unsigned percent = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (problem != std::errc() || end != text.data() + text.size() - 1 || percent < 1 || percent > 100) {
    Error error =
        Error::make(0, "%.*s: '%.*s' is not a share of the available memory", HL_TEXT(source), HL_TEXT(text));
    return std::unexpected(error.remedy("give 1%% to 100%%, or a size such as 512M"));
  }
  const AvailableMemory memory = available_memory();
  if (memory.system_bytes != 0) return page_floor(memory.bytes() / 100 * percent);
  Error error = Error::make(0, "%.*s: %.*s of the available memory cannot be told: /proc/meminfo cannot be read",
                            HL_TEXT(source), HL_TEXT(text));
  return std::unexpected(error.remedy("mount /proc, or give a size such as 512M"));
}

Result<std::uint64_t> parse_flag(std::string_view text, std::string_view source) {
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (text == yes) return 1;
  for (std::string_view no : {"0", "false", "no", "off"})
    if (text == no) return 0;
  Error error = Error::make(0, "%.*s: '%.*s' is neither yes nor no", HL_TEXT(source), HL_TEXT(text));
  return std::unexpected(error.remedy("give 1 or 0"));
}

Result<std::uint64_t> parse_choice(const Option& option, std::string_view text, std::string_view source) {
  std::vector<std::string_view> names = choices_of(option);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return i;
  Error error = Error::make(0, "%.*s: there is no '%.*s'", HL_TEXT(source), HL_TEXT(text));
  return std::unexpected(error.remedy("%s", suggestion(text, names).c_str()));
}

Result<std::uint64_t> parse_choice_or_file(const Option& option, std::string_view text, std::string_view source) {
  if (text.contains('/')) return choices_of(option).size();
  return parse_choice(option, text.substr(0, text.find(':')), source);
}

Result<std::uint64_t> parse_choices(const Option& option, std::string_view text, std::string_view source) {
  std::uint64_t set = 0;
  for (bool more = true; more;) {
    std::size_t comma = std::min(text.find(','), text.size());
    Result<std::uint64_t> index = parse_choice(option, text.substr(0, comma), source);
    if (!index) return index;
    set |= std::uint64_t{1} << *index;
    more = comma < text.size();  // "move," names an empty one, too
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return set;
}

// Without a name there is no file: taking '' for "not given" would hide a shell variable that is empty by mistake.
Result<std::uint64_t> parse_text(const Option& option, std::string_view text, std::string_view source) {
  if (!text.empty()) return 0;
  Error error = Error::make(0, "%.*s: the value is empty", HL_TEXT(source));
  return std::unexpected(
      error.remedy("leave it out, or give a %s, for example %s", option.placeholder, option.example));
}

}  // namespace

Result<std::uint64_t> parse_value(const Option& option, std::string_view text, std::string_view source) {
  switch (option.type) {
    case size_or_percent:
      if (text.ends_with('%')) return in_range(option, parse_percent(text, source), text, source);
      [[fallthrough]];
    case size:
      return in_range(option, parse_size(text, source), text, source);
    case duration:
      return in_range(option, parse_duration_ns(text, source), text, source);
    case integer:
    case level:
      return in_range(option, parse_integer(option, text, source), text, source);
    case choice:
      return parse_choice(option, text, source);
    case choice_or_file:
      return parse_choice_or_file(option, text, source);
    case choices:
      return parse_choices(option, text, source);
    case flag:
      return parse_flag(text, source);
    case OptionType::text:
    case path:
      return parse_text(option, text, source);
  }
  return 0;
}

}  // namespace hinterland
