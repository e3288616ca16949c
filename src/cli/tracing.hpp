// What `trace` adds to `run`: the recorder beside the program, and what is said of it.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/command_line.hpp"
#include "trace/recorder.hpp"

namespace hinterland::cli {

class Tracing {
 public:
  // What --output says, or PROGRAM.trace.
  static std::string output_of(const CommandLine& line);
  // Makes the file, and sets the variables for the program; `run_directory` is this run's own. Says on stderr what
  // cannot be recorded, and why.
  static Result<Tracing> begin(const CommandLine& line, const std::string& run_directory, const std::string& output);
  Status start(pid_t program) { return recorder_->start(program); }
  // A process that runs already; it must be asked afterwards to tell of its faults. Says what cannot be recorded of
  // it.
  void attach(pid_t process, bool faults_by_signal);
  std::uint64_t instruction_every() const { return recorder_->instruction_every(); }
  // After the program's end, or when no more is to be recorded. Says on stderr what there is to read now, or why
  // there is nothing; `faults_counted`: by the program's own figures there were some.
  enum class Of : std::uint8_t { started, attached, nothing };
  void finish(Of what, bool faults_counted = false);

 private:
  Tracing() = default;
  std::unique_ptr<trace::Recorder> recorder_;
  std::string directory_;  // of the rings
};

}  // namespace hinterland::cli
