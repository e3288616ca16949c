// Many far objects of one size, and how many of them hold something else than they should.
#pragma once

#include <cstdint>
#include <vector>

#include "object/test_support.hpp"

namespace hinterland::object::testing {

using Item = Known<64>;

inline std::vector<hl::far::ptr<Item>> many(std::size_t count) {
  std::vector<hl::far::ptr<Item>> items;
  for (std::size_t i = 0; i < count; ++i) items.push_back(make_known<64>(i));
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
