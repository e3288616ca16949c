// What a client knows about its far pages: a checksum each, which slabs it holds, the stamp counter. In memory
// shared with forked children, because parent and children share the session and its pages.
//
// Thread- and process-safe without locks. Sequentially consistent where nothing else is said: the stamp protocol
// (take_stamp) argues with the order of stores and loads of different words.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "far/device.hpp"

namespace hinterland::far {

class SharedPages {
 public:
  SharedPages() = default;  // of no slabs
  // Reserves 8 bytes of address space a page (touched as used). The mapping lives as long as the object.
  static Result<SharedPages> create(std::uint32_t slabs_max);
  SharedPages(SharedPages&& other) noexcept { *this = std::move(other); }
  SharedPages& operator=(SharedPages&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(bytes_, other.bytes_);
    std::swap(slabs_max_, other.slabs_max_);
    return *this;
  }
  ~SharedPages();

  std::uint32_t slabs_max() const { return slabs_max_; }
  bool contains(FarPage page) const { return page.value < std::uint64_t{slabs_max_} * kSlabPages; }

  // 0: the page holds nothing. Otherwise what checksum_of() gave when it was written.
  std::uint64_t checksum(FarPage page) const { return checksums()[page.value].load(); }
  void set(FarPage page, std::uint64_t checksum);
  void clear(FarPage page);

  // Orders this process's next write or discard after all that were stamped before, in any process (wire.hpp).
  // A writer sets the checksum and then takes a stamp; one who discards takes a stamp and then looks whether the
  // checksum is still 0. If it is, every later write has a later stamp, and the discard cannot hit it.
  std::uint64_t take_stamp() { return shared_->stamp.fetch_add(1) + 1; }

  // False when the slab was held already: a server that hands a slab out twice lies.
  bool holds(std::uint32_t slab) const { return slabs()[slab].load() != 0; }
  bool hold(std::uint32_t slab) { return slabs()[slab].exchange(1) == 0; }
  // Clears the checksums of its pages, too.
  void let_go(std::uint32_t slab);

  std::uint64_t used_pages() const { return shared_->used_pages.load(std::memory_order_relaxed); }

  // XXH3 of a page; never 0.
  static std::uint64_t checksum_of(const void* page);

 private:
  struct Shared {
    std::atomic<std::uint64_t> stamp;
    std::atomic<std::uint64_t> used_pages;  // relaxed: a figure
  };
  // The mapping: one page of Shared; a byte a slab, rounded up to pages; 8 bytes a page.
  std::atomic<std::uint8_t>* slabs() const {
    return reinterpret_cast<std::atomic<std::uint8_t>*>(reinterpret_cast<char*>(shared_) + kPageSize);
  }
  std::atomic<std::uint64_t>* checksums() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(reinterpret_cast<char*>(shared_) + kPageSize +
                                                         page_ceil(slabs_max_));
  }
  Shared* shared_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t slabs_max_ = 0;
};

}  // namespace hinterland::far
