// Who called this library, from inside a traced process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::trace {

// Fills `addresses` with the byte before each return address of this thread's stack, innermost first, frames of this
// library left out; the rest with 0. By the unwind tables: one or two microseconds, no lock, and nothing allocated
// (unless the program registered tables of its own, as a JIT may: so the caller's allocations should be local).
void find_callers(std::uint64_t* addresses, std::size_t count);

}  // namespace hinterland::trace
