// hinterland tune: another budget for a running program.
#include <cerrno>
#include <cstdio>

#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/pid.hpp"
#include "cli/request.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {
namespace {

int request_budget(StatPage& page, std::uint64_t bytes) {
  page.budget_request_bytes.store(bytes, std::memory_order_relaxed);  // sent by what follows
  return send_request(page);
}

int tune(const CommandLine& line, pid_t pid) {
  Result<StatView> view = find_running(searched_directories(line.text(OptionId::stat_dir)), pid, true);
  if (!view) return fail(kEnvironment, view.error());
  std::uint64_t wanted = line.number(OptionId::local);
  std::uint64_t before =
      (*view)->gauges[static_cast<std::size_t>(Gauge::budget_bytes)].load(std::memory_order_relaxed);
  int problem = request_budget(**view, wanted);
  if (problem == ETIMEDOUT) {
    Error error = Error::make(0, "process %d did not answer within 2 seconds", static_cast<int>(pid));
    return fail(kEnvironment, error.remedy("is it stopped? The new budget applies once it looks at its requests"));
  }
  if (problem != 0) {
    Error error = Error::make(problem, "process %d refused a budget of %s", static_cast<int>(pid),
                              rounded_size_text(wanted).c_str());
    return fail(kEnvironment,
                error.remedy("the minimum is %s", exact_size_text(option(OptionId::local).minimum).c_str()));
  }
  std::printf("%d: local memory was %s, is %s\n", static_cast<int>(pid), rounded_size_text(before).c_str(),
              rounded_size_text(wanted).c_str());
  return kSuccess;
}

}  // namespace

int tune_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("tune"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"tune"});
  if (line->rest().empty()) {
    Error error = Error::make(0, "tune: no process id given");
    return fail(kUsage, error.remedy("hinterland tune PID --local SIZE; 'hinterland stat' lists the programs"));
  }
  if (line->rest().size() > 1) return fail(kUsage, unexpected_argument("tune", line->rest()[1]));
  Result<pid_t> pid = parse_pid(line->rest()[0]);
  if (!pid) return fail(kUsage, pid.error());
  // Not from a variable: one that is set for `run` would otherwise be taken for a wish.
  if (!line->is_flag(OptionId::local)) {
    Error error = Error::make(0, "tune: --local is missing: which budget?");
    return fail(kUsage, error.remedy("hinterland tune %d --local 512M", static_cast<int>(*pid)));
  }
  return tune(*line, *pid);
}

}  // namespace hinterland::cli
