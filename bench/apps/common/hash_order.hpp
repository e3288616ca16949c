// Filling a hash table piece by piece. In the order of their keys, entries go anywhere in the table, and setting up
// far would take longer than what is to be measured.
#pragma once

#include <cstdint>

namespace apps {

// Calls body(key) for each key of [0, keys), those of the first part of the table first. part_of(key) is in [0, 16).
inline constexpr std::uint64_t kTableParts = 16;
template <typename PartOf, typename Body>
void in_hash_order(std::uint64_t keys, PartOf&& part_of, Body&& body) {
  for (std::uint64_t part = 0; part < kTableParts; ++part)
    for (std::uint64_t key = 0; key < keys; ++key)
      if (part_of(key) == part) body(key);
}

}  // namespace apps
