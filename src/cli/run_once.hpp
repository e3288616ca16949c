// One run of a program on far memory as a child, with its figures, its report and its trace: what `run` and `trace`
// have in common.
#pragma once

#include <expected>
#include <string>

#include "base/error.hpp"
#include "cli/command_line.hpp"
#include "cli/report.hpp"

namespace hinterland::cli {

// What goes wrong with the program has exit statuses of its own, those of the shells.
int status_of(const Error& error);

// A budget that the memory group does not have would end with the kernel killing the program, without a word: it gets
// what the group has.
void fit_into_group(CommandLine& line);

// With --local-total each process begins with a first share of it.
void settle_shares(CommandLine& line);

// What --fault and this kernel call for, as LD_PRELOAD has it.
Result<std::string> libraries_for(const CommandLine& line);

// Into this process's environment, for the program.
void export_settings(const CommandLine& line, const std::string& library);

struct RunFailure {
  int status;  // for main to return
  Error error;
};

// After export_settings(). Waits for the program's end. `trace_output` "": it is not traced. What is wrong with the
// report alone is said on stderr.
std::expected<Outcome, RunFailure> run_once(const CommandLine& line, const std::string& path, ReportFile& report,
                                            const std::string& trace_output);

}  // namespace hinterland::cli
