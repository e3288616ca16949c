// Where the program has mapped something by our functions that is not far memory: it knows what lies there, and may
// replace it by far memory (MAP_FIXED). Whatever else is mapped is the loader's, the kernel's or our own.
//
// Nothing is known, and everything counts as others', where only the window can be far.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::known_places {

// Once, before the program maps anything. Without it add() does nothing.
void start();
// Lengths are rounded up to whole pages. Any thread; never blocks for long.
void add(std::uintptr_t address, std::size_t length);
void remove(std::uintptr_t address, std::size_t length);

// Any thread, and signal handlers.
bool contains(std::uintptr_t address);
// The first address in [address, end) that is known as `address` is not, or the other way round; else `end`.
std::uintptr_t end_of_piece(std::uintptr_t address, std::uintptr_t end);

// Around a fork, so that the child finds the set whole.
void before_fork();
void after_fork();

}  // namespace hinterland::known_places
