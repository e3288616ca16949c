#include "cli/reference.hpp"

#include <sstream>
#include <vector>

#include "base/duration.hpp"
#include "base/options.hpp"
#include "base/size.hpp"

namespace hinterland::cli {
namespace {

constexpr std::size_t kHelpWidth = 100;

struct ExitMeaning {
  const char* status;
  const char* meaning;
};
constexpr ExitMeaning kExitMeanings[] = {
    {"0", "success (for doctor: `run` will work)"},
    {"1", "the system does not allow it, or something is not there"},
    {"2", "the command line, a variable or the configuration file is wrong; nothing was started"},
    {"126", "run, cc: the program cannot be executed"},
    {"127", "run, cc: the program was not found"},
    {"other", "run, cc: the exit status of the program; its death by a signal is passed on as such"},
};

// "-v, --verbose", "--local SIZE"
std::string flag_text(const Option& row) {
  std::string text = row.letter != 0 ? std::string("-") + row.letter + ", " : "";
  text += std::string("--") + row.name;
  if (row.placeholder[0] != '\0') text += std::string(" ") + row.placeholder;
  return text;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string number_text(const Option& row, std::uint64_t value) {
  if (row.type == OptionType::duration) return duration_text(value);
  if (row.type == OptionType::size || row.type == OptionType::size_or_percent) return exact_size_text(value);
  return std::to_string(value);
}

// "lz4, zstd", "4M to 128T", "" for anything
std::string range_text(const Option& row) {
  if (row.choices[0] != '\0') return joined(choices_of(row));
  if (row.maximum == 0 || row.type == OptionType::flag) return "";
  return number_text(row, row.minimum) + " to " + number_text(row, row.maximum);
}

std::string default_text(const Option& row) {
  std::string text = row.default_text;
  if (row.default_help[0] != '\0') text += (text.empty() ? "" : ", ") + std::string(row.default_help);
  if (row.type == OptionType::flag || row.type == OptionType::level) return "";
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column != 0 && column + 1 + word.size() > kHelpWidth - indent) {
      out += '\n';
      column = 0;
    }
    out += column == 0 ? std::string(indent, ' ') : " ";
    out += word;
    column += word.size() + (column == 0 ? 0 : 1);
  }
  return out + "\n";
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

std::string synopsis(const Command& command) {
  std::string text = std::string("hinterland ") + command.name;
  if (command.bit != 0) text += " [OPTION...]";
  if (command.arguments[0] != '\0') text += std::string(" ") + command.arguments;
  return text;
}

std::string option_facts(const Option& row) {
  std::string text = row.help;
  if (std::string facts = range_text(row); !facts.empty()) text += " Valid: " + facts + ".";
  if (std::string facts = default_text(row); !facts.empty()) text += " Default: " + facts + ".";
  return text;
}

std::string markdown_text(const std::string& text) {  // bars would end a table's cell
  std::string out;
  for (char letter : text) out += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return out;
}

std::string markdown_options(const Command& command) {
  std::string out = "| flag | variable | in the file | valid | default | meaning |\n|---|---|---|---|---|---|\n";
  for (const Option& row : all_options()) {
    if ((row.commands & command.bit) == 0) continue;
    bool variable = row.elsewhere != Elsewhere::nowhere, key = row.elsewhere == Elsewhere::variable_and_file;
    out += "| `" + markdown_text(flag_text(row)) + "` | " + (variable ? "`" + variable_name(row) + "`" : "") + " | " +
           (key && (command.bit & (kForRun | kForServe)) != 0 ? "`" + std::string(row.name) + "`" : "") + " | " +
           range_text(row) + " | " + default_text(row) + " | " + markdown_text(row.help) + " |\n";
  }
  return out;
}

// roff: a leading dot or quote would be a request, a backslash an escape, and a plain hyphen no minus.
std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else
      out += text[i];
  }
  return out;
}

std::string roff_options(const Command& command) {
  std::string out;
  for (const Option& row : all_options()) {
    if ((row.commands & command.bit) == 0) continue;
    out += ".TP\n.B " + roff(flag_text(row)) + "\n" + roff(option_facts(row)) + "\n";
    if (row.elsewhere != Elsewhere::nowhere) out += "Variable: " + roff(variable_name(row)) + ".\n";
  }
  return out;
}

std::string roff_exit_statuses() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitMeaning& row : kExitMeanings)
    out += std::string(".TP\n.B ") + row.status + "\n" + roff(row.meaning) + "\n";
  return out;
}

std::string title(const std::string& name) {
  return ".TH " + name + " 1 \"\" \"Hinterland " HINTERLAND_VERSION "\" \"User Commands\"\n";
}

std::string manual_overview() {
  std::string out = title("HINTERLAND") +
                    ".SH NAME\nhinterland \\- far memory for unmodified programs\n.SH SYNOPSIS\n"
                    ".B hinterland\nCOMMAND [OPTION...]\n.SH COMMANDS\n";
  for (const Command& command : all_commands())
    out += std::string(".TP\n.B ") + command.name + "\n" + roff(command.summary) + "\n";
  return out + roff_exit_statuses() +
         ".SH SEE ALSO\n.BR hinterland\\-run (1),\n.BR hinterland\\-serve (1),\n"
         ".BR hinterland\\-doctor (1),\n.BR hinterland\\-stat (1),\n.BR hinterland\\-tune (1)\n";
}

}  // namespace

std::string overview_text() {
  std::string out =
      "Far memory for Linux: runs a program with a bounded part of its memory local, the rest on another\n"
      "machine, on flash or compressed.\n\nUsage: hinterland COMMAND [OPTION...]\n\nCommands:\n";
  for (const Command& command : all_commands()) {
    std::string name = command.name;
    name.resize(10, ' ');
    out += "  " + name + command.summary + "\n";
  }
  return out +
         "\nFirst: hinterland doctor\nThen:  hinterland run --local 1G -- PROGRAM ARGUMENTS...\n"
         "More:  hinterland help COMMAND\n";
}

std::string help_text(const Command& command) {
  std::string out = "Usage: " + synopsis(command) + "\n\n";
  for (const std::string& paragraph : split(command.description, "\n\n")) out += wrapped(paragraph, 0) + "\n";
  if (command.bit != 0) {
    out += "Options:\n";
    for (const Option& row : all_options())
      if ((row.commands & command.bit) != 0) out += "  " + flag_text(row) + "\n" + wrapped(option_facts(row), 8);
    out += "  -h, --help\n        This help.\n\n";
    if ((command.bit & (kForRun | kForServe)) != 0)
      out +=
          "Every option is also a variable (--read-ahead is HINTERLAND_READ_AHEAD), and most a key of the\n"
          "--config file. SIZE takes 64M, 1.5G or plain bytes; TIME takes 5s or 250ms.\n\n";
  }
  out += "Examples:\n";
  for (const std::string& example : split(command.examples, "\n")) out += "  " + example + "\n";
  return out;
}

std::string reference_markdown() {
  std::string out =
      "# Reference\n\n<!-- Generated by `hinterland help --markdown` from the tables of commands and options; "
      "`make reference` writes it anew. -->\n\n"
      "An option is given as a flag, as a `HINTERLAND_*` variable, or as a key of the TOML file that `--config` "
      "names. "
      "Flags override variables, variables override the file, the file overrides the default. SIZE takes `64M`, "
      "`1.5G` "
      "or plain bytes (units of 1024); TIME takes `5s` or `250ms`.\n";
  for (const Command& command : all_commands()) {
    out += std::string("\n## hinterland ") + command.name + "\n\n    " + synopsis(command) + "\n\n";
    out += std::string(command.description) + "\n";
    if (command.bit != 0) out += "\n" + markdown_options(command);
    out += "\nExamples:\n\n";
    for (const std::string& example : split(command.examples, "\n")) out += "    " + example + "\n";
  }
  out += "\n## Exit status\n\n| status | meaning |\n|---|---|\n";
  for (const ExitMeaning& row : kExitMeanings) out += std::string("| ") + row.status + " | " + row.meaning + " |\n";
  return out;
}

std::string manual_page(const Command* command) {
  if (command == nullptr) return manual_overview();
  std::string name = std::string("hinterland-") + command->name;
  std::string upper;
  for (char letter : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  std::string out = title(upper) + ".SH NAME\n" + roff(name) + " \\- " + roff(command->summary) +
                    "\n.SH SYNOPSIS\n.B " + roff(synopsis(*command)) + "\n.SH DESCRIPTION\n";
  bool first = true;
  for (const std::string& paragraph : split(command->description, "\n\n")) {
    out += (first ? "" : ".PP\n") + roff(paragraph) + "\n";
    first = false;
  }
  if (command->bit != 0) out += ".SH OPTIONS\n" + roff_options(*command);
  out += roff_exit_statuses() + ".SH EXAMPLES\n.nf\n" + roff(command->examples) +
         "\n.fi\n.SH SEE ALSO\n.BR hinterland (1)\n";
  return out;
}

}  // namespace hinterland::cli
