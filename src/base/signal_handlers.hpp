// Whether a signal handler of the program may run on its threads. Where none can, a hint that holds pages need not
// block signals, which is two system calls: a third of what fetching a page from RAM costs.
//
// True until look() has shown otherwise, and true again for ever from the first handler on that the program installs.
// Handlers that were installed by raw system calls are seen by look() alone. Faults (SIGSEGV and its like) do not
// count: they are never blocked, because they must meet their handlers.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland::signal_handlers {

// The kernel's signal set: bit N - 1 is signal N.
inline constexpr std::uint64_t kFaults = std::uint64_t{1} << (11 - 1) | std::uint64_t{1} << (7 - 1) |
                                         std::uint64_t{1} << (4 - 1) | std::uint64_t{1} << (8 - 1) |
                                         std::uint64_t{1} << (5 - 1) | std::uint64_t{1} << (31 - 1);
inline constexpr std::uint64_t kAllButFaults = ~kFaults;
// libc's own two, for cancellation and for changing the user of all threads: they touch nothing of the program's.
inline constexpr std::uint64_t kOfLibc = std::uint64_t{1} << (32 - 1) | std::uint64_t{1} << (33 - 1);

extern std::atomic<bool> g_possible;
// seq_cst: either who is about to hold something sees a handler coming, or who installs one waits for him
inline bool possible() { return g_possible.load(); }

// Whoever calls expect() says so before. Without, look() does nothing.
void promise_to_expect();
// Asks the kernel, once; later calls do nothing.
void look();
// A handler is about to be installed: returns when nobody relies on there being none. Async-signal-safe.
void expect(int number);
// Called by expect(): waits until nobody is in the middle of what he began without blocking signals.
void set_settle(void (*settle)());

}  // namespace hinterland::signal_handlers
