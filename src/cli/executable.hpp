// Looks at a program file before it is started: can far memory be put under it with LD_PRELOAD?
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace hinterland::cli {

enum class Kind {
  dynamic_program,  // the loader will take our library along
  static_program,   // no loader
  go_program,       // its runtime takes memory by system calls of its own
  privileged,       // set-user-id, set-group-id or file capabilities: the loader ignores LD_PRELOAD
  other_abi,        // 32 bits, another processor, or another C library than glibc
  sanitized,        // with a sanitizer that has a heap of its own
  script,           // starts with #!
  not_a_program,    // neither ELF nor script
};

struct Executable {
  Kind kind = Kind::not_a_program;
  std::string detail;       // for messages: "interpreter /lib/ld-musl-x86_64.so.1", "set-user-id root"
  std::string interpreter;  // of a script: the program that runs it; with a sanitizer: the word behind -fsanitize=
};

// Reads at most the headers. An error when the file cannot be read or its headers are cut short.
Result<Executable> examine_executable(const std::string& path);

// The file that execvp() would take for `name`, following PATH. The error's code is ENOENT when there is none, and
// EACCES when what is there cannot be executed.
Result<std::string> find_program(const std::string& name);

// Whether `path` can be run on far memory; a script if its interpreter can. code() of the error: ENOEXEC when the
// kernel would not start it at all, ENOENT when a script's interpreter is missing, 0 when it would run without us.
Status check_program(const std::string& path);

}  // namespace hinterland::cli
