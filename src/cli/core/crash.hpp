// A program that dies asks for its core file (preload/crash.cpp): what it says about itself.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/error.hpp"
#include "cli/core/process_memory.hpp"
#include "cli/core/stopped_threads.hpp"

namespace hinterland::cli {

struct Crash {
  pid_t process = 0;
  pid_t thread = 0;
  siginfo_t info{};
  ThreadState state;  // of the thread, at the crash
  RuntimeView view;
};

// True when this process was started by one that dies; `address` is that of its note.
bool crash_asked_for(std::uint64_t* address);
Result<Crash> read_crash(std::uint64_t address);

}  // namespace hinterland::cli
