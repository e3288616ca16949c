// Many far objects of one size, and how many of them hold something else than they should.
#pragma once

#include <cstdint>
#include <vector>

#include "object/test_support.hpp"

namespace hinterland::object::testing {

// Under the thread sanitizer, where what is done with an object takes 30 times as long, fewer and larger ones fill as
// much memory.
#ifdef __SANITIZE_THREAD__
inline constexpr std::size_t kItemBytes = 512;
inline constexpr int kSlowdown = 8;  // by which tests divide their work
#else
inline constexpr std::size_t kItemBytes = 64;
inline constexpr int kSlowdown = 1;
#endif
using Item = Known<kItemBytes>;
inline hl::far::ptr<Item> make_item(std::uint64_t id) { return make_known<kItemBytes>(id); }

// How many items take as much memory, headers included, as `count` objects of 64 bytes.
constexpr std::size_t as_many_as(std::size_t count) { return count * (64 + 8) / (kItemBytes + 8); }

inline std::vector<hl::far::ptr<Item>> many(std::size_t count) {
  std::vector<hl::far::ptr<Item>> items;
  for (std::size_t i = 0; i < count; ++i) items.push_back(make_item(i));
  return items;
}

// Item i holds i + offset.
inline std::size_t count_wrong(const std::vector<hl::far::ptr<Item>>& items, std::uint64_t offset = 0) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    hl::far::scope held;
    wrong += !items[i].deref(held)->holds(i + offset);
  }
  return wrong;
}

}  // namespace hinterland::object::testing
