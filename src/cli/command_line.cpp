#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/log.hpp"
#include "base/suggest.hpp"
#include "cli/config_file.hpp"

namespace hinterland::cli {
namespace {

// Given without a value: --watch alone takes this.
constexpr const char* kWatchEvery = "1s";

bool takes_value(const Option& row) { return row.type != OptionType::flag && row.type != OptionType::level; }

const Option* option_of_flag(const Command& command, const std::string& flag) {
  for (const Option& row : all_options()) {
    if ((row.commands & command.bit) == 0) continue;
    if (flag == std::string("--") + row.name) return &row;
    if (row.letter != 0 && flag == std::string("-") + row.letter) return &row;
  }
  return nullptr;
}

bool looks_like_duration(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") != std::string::npos && std::isdigit(text[0]) != 0;
}

// Where the options end: at "--", or at the first word that is neither an option nor an option's value. The rest
// belongs to the program, so that its own options are never taken for ours.
std::size_t end_of_options(const Command& command, const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--" || word.size() < 2 || word[0] != '-') return i;
    const Option* row = option_of_flag(command, word);
    if (row != nullptr && takes_value(*row) && i + 1 < arguments.size()) ++i;
  }
  return arguments.size();
}

// `hinterland check FILE -- PROGRAM`: the file, which is taken out of the arguments; "" without.
std::string take_operand(const Command& command, Arguments& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(end_of_options(command, arguments));
  if ((command.bit & kForCheck) == 0 || dashes == arguments.end() || at >= dashes) return "";
  std::string operand = *at;
  arguments.erase(at);
  return operand;
}

std::unexpected<Error> unknown_option(const Command& command, const std::string& given) {
  std::vector<std::string> names{"--help"};
  for (const Option& row : all_options())
    if ((row.commands & command.bit) != 0) names.push_back(std::string("--") + row.name);
  std::vector<std::string_view> views(names.begin(), names.end());
  std::string flag = given.substr(0, given.find('='));
  Error error = Error::make(0, "%s: there is no option '%s'", command.name, flag.c_str());
  return std::unexpected(error.remedy("%s", suggestion(flag, views).c_str()));
}

std::unexpected<Error> usage(const Command& command, const std::string& what) {
  Error error = Error::make(0, "%s: %s", command.name, what.c_str());
  return std::unexpected(error.remedy("see 'hinterland %s --help'", command.name));
}

// "--report --json" is a forgotten value, not a file named --json; "--report=--json" would be one.
Status no_value_is_an_option(const Command& command, const Arguments& options) {
  for (std::size_t i = 0; i + 1 < options.size(); ++i) {
    const Option* row = option_of_flag(command, options[i]);
    if (row == nullptr || !takes_value(*row)) continue;
    const std::string& value = options[++i];
    if (value.starts_with("--") || option_of_flag(command, value) != nullptr)
      return usage(command, options[i - 1] + " needs a value, and '" + value + "' is none");
  }
  return {};
}

// CLI11 would take "--no-offload=3" for a flag that is given.
Status no_flag_has_a_value(const Command& command, const Arguments& options) {
  for (const std::string& word : options) {
    if (word == "--") break;
    std::size_t end = word.find('=');
    if (end == word.npos) continue;
    std::string name = word.substr(0, end);
    const Option* row = option_of_flag(command, name);
    if (name != "--help" && name != "-h" && (row == nullptr || takes_value(*row))) continue;
    Error error = Error::make(0, "%s: %s takes no value, and '%s' is one", command.name, name.c_str(),
                              word.substr(end + 1).c_str());
    return std::unexpected(error.remedy("give %s alone, or leave it out", name.c_str()));
  }
  return {};
}

// A variable that nobody reads is most likely a slip of the pen.
void warn_of_unknown_variables() {
  static constexpr std::string_view kPrefix = "HINTERLAND_";
  std::vector<std::string> names;
  for (const Option& row : all_options())
    if (row.elsewhere != Elsewhere::nowhere) names.push_back(variable_name(row));
  std::vector<std::string_view> views(names.begin(), names.end());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix) || std::find(views.begin(), views.end(), name) != views.end()) continue;
    std::string_view near = nearest_name(name, views);
    if (name == "HINTERLAND_STAT_KEEP" || name == "HINTERLAND_CRASH_NOTE" || name == "HINTERLAND_CORE_WRITER" ||
        name.starts_with("HINTERLAND_TRACE_") || name.starts_with("HINTERLAND_TEST_") || near.empty())
      continue;
    log::warning("%s is not a variable of ours and is ignored; did you mean %s?", std::string(name).c_str(),
                 std::string(near).c_str());
  }
}

Arguments with_watch_default(const Command& command, Arguments options) {
  if (command.bit != kForStat) return options;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i] != "--watch" && options[i] != "-w") continue;
    if (i + 1 == options.size() || !looks_like_duration(options[i + 1]))
      options[i] = std::string("--watch=") + kWatchEvery;
  }
  return options;
}

}  // namespace

// CLI11's view of the rows that the command takes.
struct CommandLine::Flags {
  explicit Flags(const Command& command);
  Status parse(const Command& command, const Arguments& options);

  CLI::App app;
  bool wants_help = false;
  std::map<std::size_t, std::string> texts;
  std::map<std::size_t, CLI::Option*> flags;  // by row
};

CommandLine::Flags::Flags(const Command& command) {
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("--help,-h", wants_help);
  std::span<const Option> rows = all_options();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if ((rows[i].commands & command.bit) == 0) continue;
    std::string name = std::string("--") + rows[i].name;
    if (rows[i].letter != 0) name += std::string(",-") + rows[i].letter;
    flags[i] = takes_value(rows[i]) ? app.add_option(name, texts[i]) : app.add_flag(name);
  }
}

Status CommandLine::Flags::parse(const Command& command, const Arguments& options) {
  try {
    app.parse(std::vector<std::string>(options.rbegin(), options.rend()));
  } catch (const CLI::ArgumentMismatch& problem) {
    for (auto& [i, flag] : flags)
      if (takes_value(all_options()[i]) && flag->count() > 1)
        return usage(command, std::string("--") + all_options()[i].name + " is given twice");
    std::string name = problem.what();
    return usage(command, name.substr(0, name.find(':')) + " needs a value");
  } catch (const CLI::ParseError& problem) {
    return usage(command, problem.what());
  }
  return {};
}

Status CommandLine::read_flags(const Command& command, const Arguments& options) {
  if (Status values = no_value_is_an_option(command, options); !values) return values;
  if (Status flags = no_flag_has_a_value(command, options); !flags) return flags;
  Flags given(command);
  if (Status parsed = given.parse(command, options); !parsed) return parsed;
  wants_help_ = given.wants_help;
  bool options_ended = false;
  for (const std::string& extra : given.app.remaining()) {
    if (extra.size() > 1 && extra[0] == '-' && extra != "--" && !options_ended) return unknown_option(command, extra);
    if (extra != "--") rest_.push_back(extra);
    options_ended = options_ended || extra == "--";
  }
  for (auto& [i, flag] : given.flags) {
    if (flag->count() == 0) continue;
    const Option& row = all_options()[i];
    std::string text = takes_value(row) ? given.texts[i] : "1";
    if (row.type == OptionType::level) text = std::to_string(std::min<std::uint64_t>(flag->count(), row.maximum));
    values_[i] = {Source::flag, text, std::string("--") + row.name, 0};
  }
  return {};
}

Status CommandLine::fill(const Command& command) {
  read_variables(command);
  if ((option(OptionId::config).commands & command.bit) != 0 && is_given(OptionId::config))
    if (Status file = read_file(command); !file) return file;
  for (std::size_t i = 0; i < all_options().size(); ++i) {
    const Option& row = all_options()[i];
    if ((row.commands & command.bit) == 0) continue;
    Value& value = values_[i];
    if (value.source == Source::none && row.default_text[0] != '\0')
      value = {Source::fallback, row.default_text, std::string("--") + row.name, 0};
    if (value.source == Source::none) continue;
    Result<std::uint64_t> number = parse_value(row, value.text, value.named);
    if (!number) return std::unexpected(number.error());
    value.number = *number;
  }
  return {};
}

void CommandLine::read_variables(const Command& command) {
  for (std::size_t i = 0; i < all_options().size(); ++i) {
    const Option& row = all_options()[i];
    if ((row.commands & command.bit) == 0 || row.elsewhere == Elsewhere::nowhere) continue;
    const char* variable = std::getenv(variable_name(row).c_str());
    if (values_[i].source == Source::none && variable != nullptr && variable[0] != '\0')
      values_[i] = {Source::variable, variable, variable_name(row), 0};
  }
}

Status CommandLine::read_file(const Command& command) {
  auto file = read_config_file(text(OptionId::config));
  if (!file) return std::unexpected(file.error());
  for (std::size_t i = 0; i < all_options().size(); ++i) {
    const Option& row = all_options()[i];
    auto found = file->find(row.name);
    if (found != file->end() && (row.commands & command.bit) != 0 && values_[i].source == Source::none)
      values_[i] = {Source::file, found->second.text, found->second.source, 0};
  }
  return {};
}

// --quiet and --verbose exclude each other; given in two places, the one that overrides counts.
Status CommandLine::settle_verbosity() {
  Value& quiet = values_[static_cast<std::size_t>(OptionId::quiet)];
  Value& verbose = values_[static_cast<std::size_t>(OptionId::verbose)];
  if (quiet.number != 0 && verbose.number != 0) {
    if (quiet.source == verbose.source) {
      Error error = Error::make(0, "%s and %s contradict each other", quiet.named.c_str(), verbose.named.c_str());
      return std::unexpected(error.remedy("leave one of them out"));
    }
    Value& loser = quiet.source > verbose.source ? verbose : quiet;
    loser.number = 0;
    loser.text = "0";
  }
  if (quiet.number != 0) log::set_level(log::Level::quiet);
  if (verbose.number != 0) log::set_level(static_cast<log::Level>(1 + verbose.number));
  return {};
}

Result<CommandLine> CommandLine::parse(const Command& command, Arguments arguments) {
  CommandLine line;
  line.operand_ = take_operand(command, arguments);
  bool program_follows = (command.bit & kForRun) != 0;
  std::size_t end = program_follows ? end_of_options(command, arguments) : arguments.size();
  Arguments options(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(end));
  if (Status read = line.read_flags(command, with_watch_default(command, options)); !read)
    return std::unexpected(read.error());
  if (line.wants_help_) return line;
  if (program_follows) {
    if (end < arguments.size() && arguments[end] == "--") ++end;
    line.rest_.assign(arguments.begin() + static_cast<std::ptrdiff_t>(end), arguments.end());
  }
  if (Status filled = line.fill(command); !filled) return std::unexpected(filled.error());
  if (Status level = line.settle_verbosity(); !level) return std::unexpected(level.error());
  warn_of_unknown_variables();
  return line;
}

}  // namespace hinterland::cli
