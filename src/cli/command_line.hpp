// What the user asked for: flags, variables and configuration file brought together by the option table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/options.hpp"
#include "cli/commands.hpp"

namespace hinterland::cli {

enum class Source : std::uint8_t { none, fallback, file, variable, flag };

// One option's value after flags went before variables, variables before the file, the file before the default.
struct Value {
  Source source = Source::none;
  std::string text;
  std::string named;  // where it was given, for errors: "--local", "HINTERLAND_LOCAL", "far.toml, line 3: local"
  std::uint64_t number = 0;  // see parse_value(); 0 for texts
};

class CommandLine {
 public:
  // Everything is checked against the table. Errors are usage errors. `help` asked for: see wants_help().
  static Result<CommandLine> parse(const Command& command, Arguments arguments);

  const Value& operator[](OptionId id) const { return values_[static_cast<std::size_t>(id)]; }
  const std::string& text(OptionId id) const { return (*this)[id].text; }
  std::uint64_t number(OptionId id) const { return (*this)[id].number; }
  bool is_given(OptionId id) const { return (*this)[id].source > Source::fallback; }
  bool is_flag(OptionId id) const { return (*this)[id].source == Source::flag; }

  // The system allows less than was asked for: programs get this instead.
  void settle_for(OptionId id, std::uint64_t number) { values_[static_cast<std::size_t>(id)].number = number; }
  // Another text in the place of the one that was given.
  void settle_for(OptionId id, const std::string& text) { values_[static_cast<std::size_t>(id)].text = text; }

  const Arguments& rest() const { return rest_; }  // PROGRAM ARGUMENT..., or PID
  // What stands before `--` and is no option, of the commands that take a file there; "" without.
  const std::string& operand() const { return operand_; }
  bool wants_help() const { return wants_help_; }

 private:
  struct Flags;
  Status read_flags(const Command& command, const Arguments& options);
  Status fill(const Command& command);
  void read_variables(const Command& command);
  Status read_file(const Command& command);
  Status settle_verbosity();
  std::array<Value, static_cast<std::size_t>(OptionId::count)> values_;
  Arguments rest_;
  std::string operand_;
  bool wants_help_ = false;
};

}  // namespace hinterland::cli
