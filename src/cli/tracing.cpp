#include "cli/tracing.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {
namespace {

void say(const trace::RecordedTrace& recorded) {
  const trace::Summary& summary = recorded.summary;
  if (recorded.write_error != 0)
    log::error("%s ends early: %s; the program was not affected. Trace to a file system with more room: -o FILE",
               recorded.path.c_str(), std::strerror(recorded.write_error));
  else
    log::info("%s: %llu faults, %llu stacks", recorded.path.c_str(), static_cast<unsigned long long>(summary.faults),
              static_cast<unsigned long long>(summary.samples));
}

}  // namespace

std::string Tracing::output_of(const CommandLine& line) {
  if (line.is_given(OptionId::output)) return line.text(OptionId::output);
  const std::string& program = line.rest()[0];
  return program.substr(program.rfind('/') + 1) + ".trace";
}

Result<Tracing> Tracing::begin(const CommandLine& line, const std::string& run_directory, const std::string& output) {
  trace::RecorderOptions options;
  options.directory = run_directory + "/" + kRingsName;
  options.output = output;
  options.overwrite = line.number(OptionId::force) != 0;
  options.rate = line.number(OptionId::rate);
  options.sampling.every_fault = options.rate == 0;
  options.sampling.by_signal = line.text(OptionId::fault) == "signal";
  options.only_note_hints = line.text(OptionId::hints) == "note";
  Result<std::unique_ptr<trace::Recorder>> recorder = trace::Recorder::create(options);
  if (!recorder) return std::unexpected(recorder.error());
  Tracing tracing;
  tracing.recorder_ = std::move(*recorder);
  tracing.directory_ = options.directory;
  if (const Error& error = tracing.recorder_->sampling_error(); error.what()[0] != '\0')
    log::warning("%s; %s", error.what(), error.next_step());
  else if (tracing.recorder_->user_only())
    log::warning(
        "faults inside system calls have no stacks: sysctl kernel.perf_event_paranoid=1 permits them (it is %d)",
        trace::perf_event_paranoid());
  for (const auto& [name, value] : tracing.recorder_->variables()) setenv(name.c_str(), value.c_str(), 1);
  return tracing;
}

void Tracing::attach(pid_t process, bool faults_by_signal) {
  bool permitted = recorder_->instruction_every() == 0;
  recorder_->attach(process, faults_by_signal);
  const Error& error = recorder_->sampling_error();
  if (permitted && recorder_->instruction_every() != 0) log::warning("%s; %s", error.what(), error.next_step());
}

void Tracing::finish(Of what, bool faults_counted) {
  std::vector<trace::RecordedTrace> traces = recorder_->finish();
  recorder_.reset();  // now: the command ends as the program did, without destructors
  if (what == Of::nothing) return;
  if (traces.empty() && what == Of::attached) {
    log::warning(
        "the program had no fault on far memory in that time: there is no trace. Does it fit into its local memory? "
        "'hinterland stat PID' tells");
    return;
  }
  if (traces.empty()) {
    if (faults_counted)
      log::warning(
          "the program had faults on far memory, but its records are not in %s: there is no trace. Was something "
          "removed there? Name a directory that others leave alone: --stat-dir",
          directory_.c_str());
    else
      log::warning(
          "the program ended before any fault on far memory: there is no trace. It may fit into its local memory: "
          "choose a smaller --local; or have ended before paging began: --takeover start");
    return;
  }
  for (const trace::RecordedTrace& recorded : traces) say(recorded);
  if (log::level() >= log::Level::warning)
    std::fprintf(stderr, "hinterland: trace written; read it with: hinterland report %s\n", traces[0].path.c_str());
}

}  // namespace hinterland::cli
