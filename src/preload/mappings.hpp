// Which mappings are far memory, and the memory calls on ranges that lie in the window, outside it or across its
// edge.
//
// Results are those of the system calls, failure as -errno. All need serves_program(); threads as the pager's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hinterland::mappings {

std::intptr_t map(std::uintptr_t address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset);
int unmap(std::uintptr_t address, std::size_t length);
int protect(std::uintptr_t address, std::size_t length, int protection);
int advise(std::uintptr_t address, std::size_t length, int advice);
int core(std::uintptr_t address, std::size_t length, unsigned char* vector);
int lock(std::uintptr_t address, std::size_t length, int flags);  // mlock2; mlock is the one without flags
int unlock(std::uintptr_t address, std::size_t length);
int sync(std::uintptr_t address, std::size_t length, int flags);
std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address);

// The far memory in the range, which the caller replaces by a mapping of another kind, is far no longer; its bytes
// are gone. For callers below uninterrupted().
int make_way(std::uintptr_t address, std::size_t length);

}  // namespace hinterland::mappings
