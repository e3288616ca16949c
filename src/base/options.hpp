// The one table of options. Out of it come the command's flags, the HINTERLAND_* variables, the keys of the
// configuration file, --help, the reference page and the man pages; nothing else lists options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace hinterland {

enum class OptionType : std::uint8_t {
  size,             // bytes: 64M, 1.5G, 4096
  size_or_percent,  // bytes, or a share of the memory available now: 75%
  duration,         // 5s, 250ms
  integer,
  text,
  path,
  choice,          // one of `choices`
  choice_or_file,  // one of `choices`, or a file: a value with a slash; of both, text behind a colon is theirs
  choices,         // any of `choices`, separated by commas
  flag,            // off, unless given
  level,           // a flag that may be given several times
};

// Commands that take an option: a set of bits.
enum : std::uint16_t {
  kForRun = 1,
  kForServe = 2,
  kForDoctor = 4,
  kForStat = 8,
  kForTune = 16,
  kForCore = 32,
  kForTrace = 64,
  kForReport = 128,
  kForReplay = 256,
  kForAdvise = 512,
  kForCompare = 1024,
  kForTop = 2048,
  kForCc = 4096,
  kForCheck = 8192,
};

// Where an option may be given besides the command line.
enum class Elsewhere : std::uint8_t {
  nowhere,
  variable,           // HINTERLAND_NAME
  variable_and_file,  // and as a key of the configuration file
};

struct Option {
  const char* name;  // the flag without dashes, and the key in the file
  char letter;       // short flag, or 0
  OptionType type;
  const char* placeholder;   // of the value, in help: SIZE, URL; "" for flags
  const char* default_text;  // "" when there is none; default_help says what happens then
  const char* default_help;  // "" when default_text says all
  std::uint64_t minimum;     // of numbers (bytes, nanoseconds, plain)
  std::uint64_t maximum;
  const char* choices;  // "one|two|three"
  std::uint16_t commands;
  Elsewhere elsewhere;
  bool for_program;  // `run` hands it to the program, and the programs that one starts
  const char* help;
  const char* example;
};

enum class OptionId : std::uint8_t {
#define HL_OPTION(id, ...) id,
#include "base/options.inc"
#undef HL_OPTION
  count
};

std::span<const Option> all_options();  // in the order of OptionId
const Option& option(OptionId id);

// HINTERLAND_READ_AHEAD for "read-ahead".
std::string variable_name(const Option& option);
// The names between the bars of option.choices.
std::vector<std::string_view> choices_of(const Option& option);

// The value as a number: bytes, nanoseconds or plain; flags 0 or 1; a choice its index; several choices a set of
// bits. A percentage is taken of the memory available now. Errors name `source` ("--local", "HINTERLAND_LOCAL", ...),
// the range or the nearest valid name. Texts and paths give 0.
Result<std::uint64_t> parse_value(const Option& option, std::string_view text, std::string_view source);

}  // namespace hinterland
