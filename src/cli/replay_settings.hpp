// The settings under which a trace is replayed: those given, and for the rest what it was recorded with.
#pragma once

#include "base/error.hpp"
#include "cli/command_line.hpp"
#include "trace/replay.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::cli {

// When it is not given: what the trace was recorded with; or the option's default, because a trace that is to show
// all accesses is recorded without any.
enum class ReadAhead : std::uint8_t { as_recorded, as_usual };

Result<trace::ReplayOptions> replay_settings(const CommandLine& line, const trace::TraceFile& file,
                                             ReadAhead read_ahead);

}  // namespace hinterland::cli
