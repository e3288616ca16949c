// Which slabs of a device are taken and which of their pages hold data: the part that all local devices share.
//
// Lives in memory shared with forked children and is changed by single atomic operations only, so that a process
// killed at any point leaves at worst one slab taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "far/device.hpp"
#include "far/shared_memory.hpp"

namespace hinterland::far {

class SlabTable {
 public:
  SlabTable() = default;
  static Result<SlabTable> create(std::uint32_t slabs);

  std::uint32_t slabs() const { return slabs_; }
  // The lowest free slab; nothing when all are taken.
  std::optional<std::uint32_t> take();
  // Forgets the slab's pages and frees it; false when it was not taken. Its memory must be cleared before, because
  // another process may take it at once.
  bool give_back(std::uint32_t slab);

  // Whether the page lies in a slab that is taken.
  bool valid(FarPage page) const {
    std::uint64_t slab = page.value / kSlabPages;
    // acquire: pairs with the release in take()
    return slab < slabs_ && (taken_word(static_cast<std::uint32_t>(slab)).load(std::memory_order_acquire) &
                             bit(static_cast<std::uint32_t>(slab))) != 0;
  }
  // The page holds data from now on / no longer; the result says whether that changed anything.
  bool mark_written(FarPage page);
  bool forget(FarPage page);
  bool written(FarPage page) const;
  std::uint64_t written_pages() const;

 private:
  struct Header {
    std::atomic<std::uint64_t> written_pages;
  };
  using Word = std::atomic<std::uint64_t>;
  static std::uint64_t bit(std::uint64_t index) { return std::uint64_t{1} << (index % 64); }
  Header& header() const { return *memory_.at<Header>(0); }
  Word& taken_word(std::uint32_t slab) const { return memory_.at<Word>(kPageSize)[slab / 64]; }
  Word& written_word(FarPage page) const { return memory_.at<Word>(written_offset_)[page.value / 64]; }

  SharedMemory memory_;
  std::uint32_t slabs_ = 0;
  std::size_t written_offset_ = 0;
};

// Slabs for `size_bytes`, or for twice the machine's memory when it is 0.
std::uint32_t slabs_for_memory(std::uint64_t size_bytes);

}  // namespace hinterland::far
