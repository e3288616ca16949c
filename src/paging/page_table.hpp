// The page words of the whole window, in one flat array, with a note per chunk of 512 pages whether any was ever
// used.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "paging/page_word.hpp"
#include "paging/reservation.hpp"

namespace hinterland {

class PageTable {
 public:
  static constexpr std::uint32_t kChunkPages = 512;  // the words of a chunk fill one page of ours

  // Address space for the words of `pages` pages; memory is taken only for chunks in use.
  Status create(std::uint32_t pages) {
    cells_ = static_cast<PageCell*>(reserve_zeroed(std::size_t{pages} * sizeof(PageCell)));
    chunks_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(pages / kChunkPages + 1));
    pages_ = pages;
    if (cells_ == nullptr || chunks_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for the page table")
                                 .remedy("use a smaller --window, or raise ulimit -v"));
    return {};
  }

  // For readers outside of the process.
  std::uintptr_t words_address() const { return reinterpret_cast<std::uintptr_t>(cells_); }
  std::uintptr_t chunks_address() const { return reinterpret_cast<std::uintptr_t>(chunks_); }

  std::uint32_t pages() const { return pages_; }
  PageCell& operator[](PageIndex page) { return cells_[page.value]; }

  // Must come before the first change of a word in the chunk, so that for_each_used() does not miss it.
  void note_used(PageIndex page) {
    std::atomic<std::uint8_t>& chunk = chunks_[page.value / kChunkPages];
    // seq_cst store: ordered before the cell's lock, which unmap's scan looks at after this note
    if (chunk.load(std::memory_order_relaxed) == 0) chunk.store(1);
  }

  // Calls visit(PageIndex, PageCell&) for the pages of [first, first + count) in chunks that were ever used.
  template <typename Visit>
  void for_each_used(PageIndex first, std::uint32_t count, Visit&& visit) {
    std::uint32_t end = first.value + count;
    for (std::uint32_t at = first.value; at < end;) {
      std::uint32_t chunk_end = (at / kChunkPages + 1) * kChunkPages;
      if (chunk_end > end || chunk_end == 0) chunk_end = end;
      if (chunks_[at / kChunkPages].load() == 0) {
        at = chunk_end;
        continue;
      }
      for (; at < chunk_end; ++at) visit(PageIndex{at}, cells_[at]);
    }
  }

 private:
  PageCell* cells_ = nullptr;
  std::atomic<std::uint8_t>* chunks_ = nullptr;
  std::uint32_t pages_ = 0;
};

}  // namespace hinterland
