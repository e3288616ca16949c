// mremap of far memory to a fixed address outside the window: the bytes move into ordinary local memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland {

// As mremap(MREMAP_MAYMOVE | MREMAP_FIXED): the new address, or -errno with nothing changed.
std::intptr_t move_out_of_window(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                                 std::uintptr_t new_address);

// The protection of the mapping at an address, as /proc/self/maps says; -EFAULT when there is none.
int protection_at(std::uintptr_t address);

}  // namespace hinterland
