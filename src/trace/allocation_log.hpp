// Inside a traced process: which of the program's allocations live, a sample of the small ones and all of the large
// ones, each with its callers; and the events of that for the recorder.
//
// What lives is kept in a table of fixed size, so that an allocation from before the process's first fault (when it
// gets its ring), or from before a fork, is known all the same. A small allocation is kept with the probability
// size / 256 KiB, drawn anew each time: each that is kept stands for 256 KiB of such allocations.
//
// All functions but begin(): any thread, neither block nor allocate far memory; those that find callers must be
// called where the thread's allocations are local (InsideRuntime).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::trace {

struct RingFile;

namespace allocation_log {

// Makes the table; false when there is no memory for it. Again after end().
bool begin();

// Whether an allocation of so many bytes is to be recorded: the time, monotonic, in ns; 0: no.
std::uint64_t sampled(std::size_t bytes);
// One that sampled() said yes to at `since_ns`: `asked` for, `bytes` usable. False: nobody records any more.
bool made(std::uintptr_t address, std::size_t asked, std::size_t bytes, std::uint64_t since_ns);
// Before the memory may be given to somebody else. Of a recorded allocation: when it was made; else 0.
std::uint64_t taken_out(std::uintptr_t address);
// Once it is given back: what taken_out() said.
void ended(std::uintptr_t address, std::uint64_t made_ns);

// The program mapped memory, or unmapped a range, at `since_ns` or soon after.
bool mapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);
void unmapped(std::uintptr_t address, std::size_t bytes, std::uint64_t since_ns);

// Into a fresh ring: all that live.
void tell_all(RingFile& ring);

}  // namespace allocation_log
}  // namespace hinterland::trace
