// Counts the private anonymous memory that is left to the kernel (gauge left_local_bytes): mappings of
// kinds that the pager does not take, and where it takes none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::left_local {

void add(std::uintptr_t address, std::size_t length);
// The range, or what is counted of it, is gone.
void remove(std::uintptr_t address, std::size_t length);
// mremap: counted at the new place if it was at the old one.
void moved(std::uintptr_t from, std::size_t old_length, std::uintptr_t to, std::size_t new_length);
// Around a fork, so that the child finds the table whole.
void before_fork();
void after_fork();

}  // namespace hinterland::left_local
