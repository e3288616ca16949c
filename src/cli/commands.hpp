// The commands of `hinterland`: one function, one file and one row of this table each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hinterland::cli {

using Arguments = std::vector<std::string>;

enum ExitStatus : int {
  kSuccess = 0,
  kEnvironment = 1,      // the system does not allow it, or something is not there
  kUsage = 2,            // the command line, a variable or the configuration file is wrong
  kNotExecutable = 126,  // as the shells have it
  kNotFound = 127,
};

struct Command {
  const char* name;
  std::uint16_t bit;        // in Option::commands; 0 when it takes none
  const char* arguments;    // in the synopsis, after the options
  const char* summary;      // one line
  const char* description;  // paragraphs, separated by an empty line
  const char* examples;     // lines
  int (*main)(const Arguments& arguments);
};

int run_main(const Arguments& arguments);
int serve_main(const Arguments& arguments);
int doctor_main(const Arguments& arguments);
int stat_main(const Arguments& arguments);
int tune_main(const Arguments& arguments);
int core_main(const Arguments& arguments);
int help_main(const Arguments& arguments);
int trace_main(const Arguments& arguments);
int advise_main(const Arguments& arguments);
int replay_main(const Arguments& arguments);
int report_main(const Arguments& arguments);
int top_main(const Arguments& arguments);
int cc_main(const Arguments& arguments);
int check_main(const Arguments& arguments);
int compare_main(const Arguments& arguments);
int version_main(const Arguments& arguments);

std::span<const Command> all_commands();
const Command* find_command(const std::string& name);  // nullptr when there is none

// Says on stderr what failed and what to do next, and gives back `status` for main to return.
int fail(int status, const Error& error);
Error unexpected_argument(const char* command, const std::string& argument);

}  // namespace hinterland::cli
