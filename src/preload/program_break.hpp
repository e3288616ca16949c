// The end of the program's data (brk, sbrk), and far memory before it. Both calls need serves_program().
#pragma once

#include <cstdint>

namespace hinterland::program_break {

// Where it is. The first call notes where it was at first.
std::uintptr_t now();
// False, and nothing has changed: there is no memory. To before where it was at first it does not move.
bool move(std::uintptr_t to);

}  // namespace hinterland::program_break
