// Runs a program as a child and stands in for it: passes signals on, stops and continues with it.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"

namespace hinterland::cli {

// Starts `path` with `arguments` (argument 0 included) and this process's environment, and waits for its end. The
// error's code says why it could not be started. Signals that would end, stop or inform this process go to the
// program instead; those that the terminal sends reach it by themselves and are not doubled.
// `before_start`, where there is one, is told of the child while it waits to become the program; its error ends the
// child, and becomes that of this call.
Result<Outcome> supervise(const std::string& path, const Arguments& arguments,
                          const std::function<Status(pid_t)>& before_start = nullptr);

// Ends this process as the program ended: with its exit status, or by the same signal (without a core dump of ours).
[[noreturn]] void end_like(const Outcome& outcome);

// Becomes the program. Returns only on failure.
Error become(const std::string& path, const Arguments& arguments);

}  // namespace hinterland::cli
