// hinterland help and version; also prints the reference page and the manual pages for the build.
#include <cstdio>

#include "base/suggest.hpp"
#include "cli/commands.hpp"
#include "cli/reference.hpp"

namespace hinterland::cli {
namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return kSuccess;
}

int no_such_command(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) names.push_back(command.name);
  Error error = Error::make(0, "help: there is no command '%s'", name.c_str());
  return fail(kUsage, error.remedy("%s", suggestion(name, names).c_str()));
}

}  // namespace

int help_main(const Arguments& arguments) {
  if (arguments.empty()) return print(overview_text());
  if (arguments[0] == "--markdown") return print(reference_markdown());
  bool manual = arguments[0] == "--man";
  if (manual && arguments.size() == 1) return print(manual_page(nullptr));
  const std::size_t at = manual ? 1 : 0;
  if (arguments.size() > at + 1) return fail(kUsage, unexpected_argument("help", arguments[at + 1]));
  const std::string& name = arguments[at];
  const Command* command = find_command(name == "--help" || name == "-h" ? "help" : name);
  if (command == nullptr) return no_such_command(name);
  return print(manual ? manual_page(command) : help_text(*command));
}

int version_main(const Arguments& arguments) {
  if (!arguments.empty()) return fail(kUsage, unexpected_argument("version", arguments[0]));
  return print("hinterland " HINTERLAND_VERSION "\n");
}

}  // namespace hinterland::cli
