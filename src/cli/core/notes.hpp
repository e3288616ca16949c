// The notes of a core file: registers of each thread, and what tells debuggers which program it was.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/core/stopped_threads.hpp"
#include "cli/memory_map.hpp"

namespace hinterland::cli {

// The first thread is the one that debuggers show. `info`: of the signal that ends the program.
std::string core_notes(pid_t process, const std::vector<ThreadState>& threads, const std::vector<Mapping>& mappings,
                       const std::optional<siginfo_t>& info);

}  // namespace hinterland::cli
