#include "cli/trace_attach.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "cli/pid.hpp"
#include "cli/request.hpp"
#include "cli/running.hpp"
#include "cli/tracing.hpp"

namespace hinterland::cli {
namespace {

constexpr long kLookEveryNs = 50'000'000;

// Settings of a program that is yet to be started.
Status check(const CommandLine& line) {
  if (!line.rest().empty()) {
    Error error = Error::make(0, "trace: --attach records a program that runs, and %s is to be started",
                              line.rest()[0].c_str());
    return std::unexpected(error.remedy("leave one of them out"));
  }
  for (std::size_t i = 0; i < all_options().size(); ++i) {
    auto id = static_cast<OptionId>(i);
    bool applies = id == OptionId::stat_dir || id == OptionId::verbose || id == OptionId::quiet ||
                   id == OptionId::force || id == OptionId::config;
    bool for_start = (option(id).commands & kForRun) != 0 || id == OptionId::sizes || id == OptionId::hints;
    if (!for_start || applies || !line.is_flag(id)) continue;
    Error error = Error::make(0, "trace: --%s is for a program that is started, and %s runs already", option(id).name,
                              line.text(OptionId::attach).c_str());
    return std::unexpected(
        error.remedy("leave it out; 'hinterland tune %s --local SIZE' changes the budget of a program that runs",
                     line.text(OptionId::attach).c_str()));
  }
  return {};
}

// The rings are made by the process, in a directory of ours.
Status check_owner(pid_t pid) {
  struct stat status{};
  std::string proc = "/proc/" + std::to_string(pid);
  if (stat(proc.c_str(), &status) != 0 || status.st_uid == geteuid()) return {};
  Error error = Error::make(0, "process %d is not yours", static_cast<int>(pid));
  return std::unexpected(error.remedy("trace it as its owner: sudo -u '#%u' hinterland trace --attach %d",
                                      static_cast<unsigned>(status.st_uid), static_cast<int>(pid)));
}

Status ask(StatView& view, const std::string& directory, std::uint64_t instruction_every) {
  StatPage& page = *view;
  if (directory.size() >= sizeof page.trace_directory) {
    Error error = Error::make(0, "the path %s is too long", directory.c_str());
    return std::unexpected(error.remedy("name a shorter directory with --stat-dir"));
  }
  std::memcpy(page.trace_directory, directory.c_str(), directory.size() + 1);
  page.trace_instruction_every = instruction_every;
  page.trace_requested.store(1, std::memory_order_release);  // pairs with the process's exchange
  int problem = send_request(page);
  if (problem == 0) return {};
  page.trace_requested.store(0, std::memory_order_relaxed);  // it shall not begin once nobody waits
  if (problem == ETIMEDOUT) {
    Error error = Error::make(0, "process %d did not answer within 2 seconds", page.pid);
    return std::unexpected(error.remedy("is it stopped? Let it go on, and try again"));
  }
  if (problem == EBUSY) {
    Error error = Error::make(0, "process %d is being traced already", page.pid);
    return std::unexpected(error.remedy("end that recording first"));
  }
  if (problem == ENOTSUP) {
    Error error =
        Error::make(0, "process %d is linked with libhinterland and was not started by hinterland", page.pid);
    return std::unexpected(error.remedy("start it with 'hinterland run', or trace it from its start"));
  }
  return std::unexpected(Error::make(problem, "process %d refused to be traced", page.pid));
}

class EndingSignals {
 public:
  // Before any thread is made, so that none takes them.
  EndingSignals() {
    sigemptyset(&signals_);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  bool came_within(long ns) const {
    timespec limit{0, ns};
    return sigtimedwait(&signals_, nullptr, &limit) > 0;
  }

 private:
  sigset_t signals_;
};

void wait_for_end(const CommandLine& line, const StatView& view, const EndingSignals& signals) {
  std::uint64_t seconds = line.is_given(OptionId::seconds) ? line.number(OptionId::seconds) : UINT32_MAX;
  std::uint64_t end_ns = now_ns() + seconds * 1'000'000'000;
  while (view.is_alive() && now_ns() < end_ns && !signals.came_within(kLookEveryNs)) {
  }
}

Status record(const CommandLine& line, StatView& view, const std::string& directory) {
  EndingSignals signals;
  std::string output =
      line.is_given(OptionId::output) ? line.text(OptionId::output) : text_of(view->program) + ".trace";
  Result<Tracing> tracing = Tracing::begin(line, directory, output);
  if (!tracing) return std::unexpected(tracing.error());
  tracing->attach(view->pid, view->faults_by_signal != 0);
  Status asked = ask(view, directory + "/" + kRingsName, tracing->instruction_every());
  if (asked && log::level() >= log::Level::warning)
    std::fprintf(stderr, "hinterland: recording process %d (%s); Ctrl-C ends that, and not the program\n", view->pid,
                 text_of(view->program).c_str());
  if (asked) wait_for_end(line, view, signals);
  tracing->finish(asked ? Tracing::Of::attached : Tracing::Of::nothing);
  return asked;
}

}  // namespace

int trace_attached(const CommandLine& line) {
  if (Status options = check(line); !options) return fail(kUsage, options.error());
  Result<pid_t> pid = parse_pid(line.text(OptionId::attach));
  if (!pid) return fail(kUsage, pid.error());
  // Before its figures are looked for, which are in a folder that only its owner can open.
  if (Status owner = check_owner(*pid); !owner) return fail(kEnvironment, owner.error());
  const std::string& stat_dir = line.text(OptionId::stat_dir);
  Result<StatView> view = find_running(searched_directories(stat_dir), *pid, true);
  if (!view) return fail(kEnvironment, view.error());
  Result<std::string> directory = make_run_directory(chosen_directory(stat_dir));
  if (!directory) return fail(kEnvironment, directory.error());
  Status recorded = record(line, *view, *directory);
  remove_run_directory(*directory);
  return recorded ? kSuccess : fail(kEnvironment, recorded.error());
}

}  // namespace hinterland::cli
