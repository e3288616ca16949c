// Whether far memory is on. Decided once, by the constructor (start.cpp), before the program has threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/inside.hpp"
#include "paging/pager.hpp"

// Marks what programs see in place of libc's function of the same name.
#define HL_INTERPOSED extern "C" __attribute__((visibility("default")))

namespace hinterland {

enum class Mode : std::uint8_t {
  early,   // before the constructor: allocations are local, system calls pass
  native,  // not under `hinterland run`: everything is libc's
  far,     // the pager runs
};
extern std::atomic<Mode> g_mode;

// relaxed: changes once, while there is one thread
inline Mode mode() { return g_mode.load(std::memory_order_relaxed); }

// The call comes from the program (or a library of its), and is ours to serve.
inline bool serves_program() { return mode() == Mode::far && t_inside_runtime == 0; }

// The pager, in code that runs only when serves_program().
inline Pager& pager() { return *Pager::current(); }

}  // namespace hinterland
