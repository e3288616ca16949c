// hinterland run: checks everything, sets the variables, and becomes the program, or its parent.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/available_memory.hpp"
#include "base/file_limit.hpp"
#include "base/log.hpp"
#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/before_run.hpp"
#include "cli/command_line.hpp"
#include "cli/executable.hpp"
#include "cli/run_once.hpp"
#include "cli/running.hpp"
#include "cli/sites_of_trace.hpp"
#include "cli/sizes.hpp"
#include "cli/supervise.hpp"
#include "cli/trace_attach.hpp"
#include "cli/tracing.hpp"
#include "far/url.hpp"

namespace hinterland::cli {
namespace {

std::unexpected<Error> contradiction(const Value& one, const Value& other, const char* remedy) {
  Error error = Error::make(0, "%s (%s) and %s (%s) contradict each other", one.named.c_str(), one.text.c_str(),
                            other.named.c_str(), other.text.c_str());
  return std::unexpected(error.remedy("%s", remedy));
}

// Bits of --without, in the order of its choices.
enum : std::uint64_t { kWithoutWriteProtect = 1, kWithoutMove = 2 };

Status check_options(const CommandLine& line, bool traced) {
  using enum OptionId;
  if (auto url = ::hinterland::far::parse_url(line.text(far)); !url) return std::unexpected(url.error());
  if (line.is_flag(local) && line.is_flag(local_total))
    return contradiction(line[local], line[local_total], "give the budget of each process, or that of all together");
  if (traced && line.is_flag(local_total) && line.is_given(sizes))
    return contradiction(line[local_total], line[sizes], "leave one of them out");
  if (line.number(local) > line.number(window))
    return contradiction(line[local], line[window],
                         "the window holds local and far memory: make it larger than --local");
  const std::string& how = line.text(take);
  if (how == "move" && (line.number(without) & kWithoutMove) != 0)
    return contradiction(line[take], line[without], "leave one of them out");
  if (how == "protect" && (line.number(without) & kWithoutWriteProtect) != 0)
    return contradiction(line[take], line[without], "leave one of them out");
  if (line.is_flag(key_file) && line.text(far).find("tcp:") == std::string::npos)
    return contradiction(line[key_file], line[far], "only tcp:// devices use a key: leave it out");
  // Who writes a core file reads far pages from outside.
  if (line.text(fault) == "signal" && line.is_given(core))
    return contradiction(line[fault], line[core], "core files are written where faults are served by message");
  if (traced && line.is_given(sizes)) {
    if (Result<std::vector<unsigned>> list = sizes_of(line.text(sizes)); !list) return std::unexpected(list.error());
    if (line.is_flag(local)) return contradiction(line[local], line[sizes], "leave one of them out");
    if (line.is_flag(report)) return contradiction(line[report], line[sizes], "leave one of them out");
  }
  if (!traced && line.is_flag(force) && !line.is_given(report)) {
    Error error = Error::make(0, "--force is about the file of --report, and none is given");
    return std::unexpected(error.remedy("leave it out, or add --report FILE"));
  }
  return {};
}

// The program itself could say it only once for each process that it starts.
void warn_without_figures(const CommandLine& line, bool is_parent) {
  if (!fits_file_limit(sizeof(StatPage))) {
    log::warning(
        "the file size limit is too small for the figures of programs, which run without: raise it (ulimit -f %zu)",
        sizeof(StatPage) / 512 + 1);
    return;
  }
  if (is_parent) return;  // it refuses a folder that is not good
  Result<FiguresFolder> folder = FiguresFolder::make(chosen_directory(line.text(OptionId::stat_dir)));
  if (!folder)
    log::warning("%s; the program runs without figures: %s", folder.error().what(), folder.error().next_step());
}

int run_as_parent(const CommandLine& line, const std::string& path, ReportFile report, bool traced) {
  std::string output = traced ? Tracing::output_of(line) : "";
  std::expected<Outcome, RunFailure> outcome = run_once(line, path, report, output);
  if (!outcome) return fail(outcome.error().status, outcome.error().error);
  end_like(*outcome);
}

// A program without far memory, because the user said so.
int run_without_us(const CommandLine& line, const std::string& path, const Error& why) {
  log::warning("%s; started without far memory (--best-effort)", why.what());
  Error error = become(path, line.rest());
  return fail(status_of(error), error);
}

int run(CommandLine& line, bool traced) {
  Result<std::string> path = find_program(line.rest()[0]);
  if (!path) return fail(status_of(path.error()), path.error());
  if (Status program = check_program(*path); !program) {
    bool would_run = program.error().code() == 0;
    if (would_run && line.number(OptionId::best_effort) != 0) return run_without_us(line, *path, program.error());
    return fail(status_of(program.error()), program.error());
  }
  Result<std::string> library = libraries_for(line);
  if (!library) return fail(kEnvironment, library.error());
  if (Status policy = check_policy(line); !policy) return fail(kUsage, policy.error());
  if (Status catching = check_catching(line); !catching) return fail(kEnvironment, catching.error());
  if (Status system = check_system(line); !system) return fail(kEnvironment, system.error());
  if (Status device = check_device(line, line.text(OptionId::far)); !device)
    return fail(kEnvironment, device.error());
  Result<ReportFile> report = ReportFile::open(line.text(OptionId::report), line.number(OptionId::force) != 0);
  if (!report) return fail(report.error().code() == 0 ? kUsage : kEnvironment, report.error());
  if (traced && line.is_given(OptionId::sizes)) return trace_sizes(line, *path, *library);
  if (Status sites = settle_sites(line); !sites) return fail(kEnvironment, sites.error());
  fit_into_group(line);
  settle_shares(line);
  export_settings(line, *library);
  bool is_parent =
      report->is_wanted() || line.number(OptionId::verbose) != 0 || line.is_given(OptionId::local_total) || traced;
  warn_without_figures(line, is_parent);
  if (is_parent) return run_as_parent(line, *path, std::move(*report), traced);
  Error error = become(*path, line.rest());
  return fail(status_of(error), error);
}

int start(const char* name, const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command(name), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({name});
  bool traced = (find_command(name)->bit & kForTrace) != 0;
  if (traced && line->is_given(OptionId::attach)) return trace_attached(*line);
  if (traced && line->is_given(OptionId::seconds)) {
    Error error = Error::make(0, "trace: --seconds is for --attach, and none is given");
    return fail(kUsage, error.remedy("leave it out, or name a running program with --attach PID"));
  }
  if (Status options = check_options(*line, traced); !options) return fail(kUsage, options.error());
  if (line->rest().empty()) {
    Error error = Error::make(0, "%s: no program given", name);
    return fail(kUsage, error.remedy("hinterland %s --local 512M -- PROGRAM ARGUMENTS...", name));
  }
  return run(*line, traced);
}

}  // namespace

int run_main(const Arguments& arguments) { return start("run", arguments); }
int trace_main(const Arguments& arguments) { return start("trace", arguments); }

}  // namespace hinterland::cli
