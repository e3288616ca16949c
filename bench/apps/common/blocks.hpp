// Arrays by blocks: what one hint asks for, and what one thread works on at a time. Results that are added up block
// by block do not depend on how many threads there are.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/team.hpp"

namespace apps {

// 64 pages: as far as a request reaches. A hint of so much costs next to nothing beside the work on it, so that it
// need not be thought about in the innermost loops, which stay as the compiler likes them.
inline constexpr std::size_t kBlockBytes = std::size_t{64} * 4096;

struct Block {
  std::size_t number, first, count;  // elements [first, first + count)
};

constexpr std::size_t blocks_of(std::size_t elements, std::size_t block) { return (elements + block - 1) / block; }

constexpr Block block_at(std::size_t number, std::size_t elements, std::size_t block) {
  return {number, number * block, std::min(block, elements - number * block)};
}

// body(Block) for the blocks of the i-th of `of`, in order.
template <typename Body>
void for_blocks(std::size_t elements, std::size_t block, unsigned i, unsigned of, Body&& body) {
  Share mine = share(blocks_of(elements, block), i, of);
  for (std::size_t number = mine.first; number < mine.last; ++number) body(block_at(number, elements, block));
}

}  // namespace apps
