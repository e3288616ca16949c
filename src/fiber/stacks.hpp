// Stacks of fibers: plain mappings of the kernel's, with a guard below each.
//
//     | guard, 64 KiB | stack, grows down ...       | callable | control block | its address |     next stack's guard
//     ... ^ slab + one page + n * stride                                                ^ 0: nobody's
//
// MAP_STACK keeps them out of far memory: the preloaded library leaves such mappings to the kernel. The scheduler's
// own data lies there as well, for the fault handler may have to make a fiber ready while a page is missing (I6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hinterland/fiber.hpp"

namespace hinterland::fiber {

// Fresh zeroed memory that is never far, and its end. nullptr when there is none.
void* map_local(std::size_t bytes);
void unmap_local(void* memory, std::size_t bytes);

struct Stack {
  std::byte* low = nullptr;  // lowest usable byte; the guard lies below
  std::byte* top = nullptr;  // one behind the highest
  std::size_t bytes() const { return static_cast<std::size_t>(top - low); }
};

// A mapping of many stacks: fewer mappings, of which a process may have 65,530. All of a process are in one list,
// which debuggers read (packaging/hinterland-gdb.py).
struct StackSlab {
  StackSlab* next;
  StackSlab* previous;
  std::byte* first;  // stack's guard
  std::byte* end;
  std::size_t stride;
};

// Thread-safe. Stacks that are given back are used again, last first; nothing is unmapped before the end.
class Stacks {
 public:
  // A frame may be this large and still meet the guard instead of the neighbour.
  static constexpr std::size_t kGuardBytes = 64 * 1024;
  static constexpr std::size_t kLeastBytes = 16 * 1024;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // At least `bytes` of them, rounded up to a power of two. An empty one when memory is short.
  Stack take(std::size_t bytes);
  void give_back(Stack stack);
  // The word at its top: which control block is on it, for debuggers.
  static void* volatile& occupant(Stack stack) {
    return *reinterpret_cast<void* volatile*>(stack.top - sizeof(void*));
  }

 private:
  struct Free {  // lies below the top of a stack that nobody uses
    Free* next;
    std::byte* low;
  };
  using Slab = StackSlab;
  static constexpr std::size_t kClasses = 31;      // by the logarithm of the size
  static constexpr std::uint32_t kKeptWarm = 256;  // of each size; more than these give their memory back

  struct Class {
    Free* free = nullptr;
    std::uint32_t free_count = 0;
    std::byte* fresh = nullptr;  // of the last slab, what was never used
    std::byte* fresh_end = nullptr;
  };
  bool add_slab(Class& of, std::size_t stride);

  hl::fibers::detail::spin_lock guard_;  // of what follows
  std::array<Class, kClasses> classes_;
  std::vector<Slab*> slabs_;
};

}  // namespace hinterland::fiber
