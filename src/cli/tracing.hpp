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
  // After the program's end. Says on stderr what there is to read now.
  void finish();

 private:
  Tracing() = default;
  std::unique_ptr<trace::Recorder> recorder_;
};

}  // namespace hinterland::cli
