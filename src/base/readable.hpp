// Whether memory of the program may be read, before the runtime does: a wrong pointer in a system call is the
// kernel's to refuse, and must not be a fault of ours.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/raw_call.hpp"
#include "base/units.hpp"

namespace hinterland {

// Thread-safe, and may be called in signal handlers; keeps errno. The kernel reads the eight bytes before it finds
// that there is no such way to change a mask. Where faults are served by signal it cannot read a far page: hold the
// range first (signal/held.hpp, preload/held_for_call.hpp). Not inlined: there it is called on the program's stack,
// in functions that may take 512 bytes of it (docs/adr/0037-stacks-of-the-runtimes-own.md).
[[gnu::noinline]] inline bool is_readable(const void* pointer, std::size_t bytes) {
  constexpr long kNoWay = -1, kWord = 8;
  const auto first = reinterpret_cast<std::uintptr_t>(pointer), end = first + bytes;
  if (end < first) return false;
  for (std::uintptr_t at = first; at < end; at = page_floor(at) + kPageSize)
    if (raw::call(SYS_rt_sigprocmask, kNoWay, static_cast<long>(at & ~std::uintptr_t{kWord - 1}), 0, kWord) ==
        -EFAULT)
      return false;
  return true;
}

}  // namespace hinterland
