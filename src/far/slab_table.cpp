#include "far/slab_table.hpp"

#include <algorithm>
#include <bit>

namespace hinterland::far {

Result<SlabTable> SlabTable::create(std::uint32_t slabs) {
  SlabTable table;
  table.slabs_ = slabs;
  table.written_offset_ = kPageSize + page_ceil(slabs / 8 + sizeof(Word));
  std::size_t bytes = table.written_offset_ + std::size_t{slabs} * (kSlabPages / 8);
  auto memory = SharedMemory::reserve(bytes, "the table of slabs");
  if (!memory) return std::unexpected(memory.error());
  table.memory_ = std::move(*memory);
  return table;
}

std::optional<std::uint32_t> SlabTable::take() {
  for (std::uint32_t first = 0; first < slabs_; first += 64) {
    Word& word = taken_word(first);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (~seen != 0) {
      std::uint32_t slab = first + static_cast<std::uint32_t>(std::countr_one(seen));
      if (slab >= slabs_) break;
      // acquire: pairs with the release in give_back(), so that the slab's cleared pages are seen as such;
      // release: pairs with the acquire in valid()
      if (word.compare_exchange_weak(seen, seen | bit(slab), std::memory_order_acq_rel, std::memory_order_relaxed))
        return slab;
    }
  }
  return std::nullopt;
}

bool SlabTable::give_back(std::uint32_t slab) {
  FarPage first{std::uint64_t{slab} * kSlabPages};
  if (!valid(first)) return false;
  std::uint64_t forgotten = 0;
  for (std::uint64_t at = 0; at < kSlabPages; at += 64) {
    Word& word = written_word({first.value + at});
    if (word.load(std::memory_order_relaxed) == 0) continue;
    forgotten += static_cast<std::uint64_t>(std::popcount(word.exchange(0, std::memory_order_relaxed)));
  }
  header().written_pages.fetch_sub(forgotten, std::memory_order_relaxed);
  // release: pairs with the acquire in take()
  return (taken_word(slab).fetch_and(~bit(slab), std::memory_order_release) & bit(slab)) != 0;
}

// Relaxed throughout: a page's bits are only statistics to others; its data is ordered by whoever hands its address
// from one thread to another.
bool SlabTable::mark_written(FarPage page) {
  bool changed = (written_word(page).fetch_or(bit(page.value), std::memory_order_relaxed) & bit(page.value)) == 0;
  if (changed) header().written_pages.fetch_add(1, std::memory_order_relaxed);
  return changed;
}

bool SlabTable::forget(FarPage page) {
  if (!written(page)) return false;
  bool changed = (written_word(page).fetch_and(~bit(page.value), std::memory_order_relaxed) & bit(page.value)) != 0;
  if (changed) header().written_pages.fetch_sub(1, std::memory_order_relaxed);
  return changed;
}

bool SlabTable::written(FarPage page) const {
  return (written_word(page).load(std::memory_order_relaxed) & bit(page.value)) != 0;
}

std::uint64_t SlabTable::written_pages() const { return header().written_pages.load(std::memory_order_relaxed); }

std::uint32_t slabs_for_memory(std::uint64_t size_bytes) {
  std::uint64_t bytes = size_bytes != 0 ? size_bytes : 2 * machine_memory_bytes();
  // 32-bit page-in-device arithmetic is not used anywhere, but FarPage is 40 bits: 2^28 slabs
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / kSlabBytes, 1, std::uint64_t{1} << 28));
}

}  // namespace hinterland::far
