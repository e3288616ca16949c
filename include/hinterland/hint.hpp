// Hints in C++20. What they mean, and what they cost, is in hint.h.
//
//     hl::read(p);
//     hl::hint(p, {.mut = true, .size = n, .rdahead = 8});
//     hl::seq_read(p);                              the place in the program and the thread remember the last page
//     hl::pinned keep(buffer, size);                not evicted while `keep` lives
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "hinterland/hint.h"

namespace hl {

struct options {
  bool mut = false;          // will be written
  std::size_t size = 1;      // bytes that will be used, from the address on
  std::int32_t rdahead = 0;  // pages to fetch with them, behind the range, or, below zero, before it
  int ev_prio = 0;           // 0 (keep) to 15 (evict soon)
  bool seq = false;          // the address goes through memory in order
};

inline void read(const volatile void* address) noexcept { hl_read(address); }
inline void write(const volatile void* address) noexcept { hl_write(address); }

// Each call is a place of its own, because each lambda is a type of its own.
template <typename Place = decltype([] {})>
[[gnu::always_inline]] inline void hint(const volatile void* address, const options& how) noexcept {
  static constinit __thread std::uintptr_t last = 0;
  auto at = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t flags = (how.mut ? HL_HINT_WRITE : 0u) | (static_cast<std::uint32_t>(how.ev_prio) & 15u)
                                                             << HL_HINT_PRIORITY_SHIFT;
  if (how.seq)
    hl__touch_in_order(at, how.size, how.rdahead, flags, &last);
  else
    hl__touch(at, how.size, how.rdahead, flags);
}
template <typename Place = decltype([] {})>
[[gnu::always_inline]] inline void seq_read(const volatile void* address) noexcept {
  hint<Place>(address, {.seq = true});
}
template <typename Place = decltype([] {})>
[[gnu::always_inline]] inline void seq_write(const volatile void* address) noexcept {
  hint<Place>(address, {.mut = true, .seq = true});
}

inline void prefetch(const volatile void* address, std::size_t size) noexcept { hl_prefetch(address, size); }
inline void cold(const volatile void* address, std::size_t size) noexcept { hl_cold(address, size); }

// Keeps the pages of a range while it lives: hl_pin and hl_unpin. Throws std::system_error where hl_pin refuses.
class pinned {
 public:
  pinned(const void* address, std::size_t size) : address_(address), size_(size) {
    if (int error = hl_pin(address, size); error != 0)
      throw std::system_error(error, std::generic_category(), "cannot pin memory");
  }
  ~pinned() { hl_unpin(address_, size_); }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;

 private:
  const void* address_;
  std::size_t size_;
};

}  // namespace hl
