// The large objects that requests end in: 8 KiB each, about half of which compresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <hinterland/hint.hpp>

#include "common/pages.hpp"

namespace webservice {

inline constexpr std::size_t kObjectBytes = 8192;

class Objects {
 public:
  Objects(std::size_t count, std::uint64_t seed);

  std::size_t count() const { return bytes_.size() / kObjectBytes; }
  std::size_t bytes() const { return bytes_.bytes(); }
  // An object, there to be read. With `last`, it is the first to leave again: it is large, and seldom asked for
  // twice, where the entries of the table are small and asked for often (AIFM's non-temporal access; Eden 4,
  // priority).
  const std::byte* get(std::size_t number, bool last) const {
    const std::byte* object = &bytes_[number * kObjectBytes];
    hl::hint(object, {.size = kObjectBytes, .ev_prio = last ? 15 : 0});
    return object;
  }
  // Writes what the object was made of.
  static void make(std::size_t number, std::uint64_t seed, std::byte* to);

 private:
  apps::Pages<std::byte> bytes_;
};

}  // namespace webservice
