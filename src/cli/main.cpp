// hinterland: finds the command and hands over to it.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/suggest.hpp"
#include "cli/commands.hpp"

using namespace hinterland;
using namespace hinterland::cli;

namespace {

int unknown_command(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) names.push_back(command.name);
  Error error = Error::make(0, "there is no command '%s'", name.c_str());
  return fail(kUsage, error.remedy("%s", suggestion(name, names).c_str()));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    Error error = Error::make(0, "no command given");
    return fail(kUsage, error.remedy("start with 'hinterland doctor', or see 'hinterland help'"));
  }
  Arguments rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "--help" || arguments[0] == "-h") return help_main(rest);
  if (arguments[0] == "--version") return version_main(rest);
  const Command* command = find_command(arguments[0]);
  return command != nullptr ? command->main(rest) : unknown_command(arguments[0]);
}

}  // namespace

int main(int count, char** values) {
  try {
    int status = dispatch(Arguments(values + 1, values + count));
    // A full disk or a closed pipe behind stdout must not look like success.
    if (std::fflush(stdout) != 0 && status == kSuccess)
      return fail(kEnvironment, Error::make(errno, "standard output cannot be written"));
    return status;
  } catch (const std::exception& problem) {
    return fail(kEnvironment, Error::make(0, "internal error: %s; please report it", problem.what()));
  }
}
