// A set of pages out of all user addresses: which pages that lie outside of the window are far memory's.
//
// A byte a GiB says none, some or all; for a GiB with some, a bit a page says which. So a look at an address is two
// loads at most, a mapping of terabytes costs a byte a GiB, and nothing is allocated: who asks may be a signal
// handler, or stand anywhere in the runtime.
//
// Readers take no lock. Who adds and removes excludes others who do (the pager's map lock). A reader that looks at
// pages which are being added or removed at that moment sees either; of others it sees what is true.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "base/units.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class AddressSet {
 public:
  static constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 47;  // of user addresses

  // 4 GiB of address space; memory is taken only for GiB in which something begins or ends.
  Status create() {
    chunks_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(kChunks + sizeof *pages_));
    pages_ = reinterpret_cast<std::atomic<std::size_t>*>(chunks_ + kChunks);
    bits_ = static_cast<std::atomic<std::uint64_t>*>(reserve_zeroed(kEnd / kPageSize / 8));
    if (chunks_ == nullptr || bits_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for the set of far pages outside of the window"));
    return {};
  }

  std::size_t bytes() const {
    return chunks_ != nullptr ? bytes_of_pages(pages_->load(std::memory_order_relaxed)) : 0;
  }

  bool contains(std::uintptr_t address) const {
    if (chunks_ == nullptr || address >= kEnd) return false;
    switch (chunks_[address / kChunkBytes].load(std::memory_order_acquire)) {  // pairs with fill()
      case kNone:
        return false;
      case kAll:
        return true;
      default:
        return (word_of(page_of(address)).load(std::memory_order_relaxed) >> (page_of(address) % 64) & 1) != 0;
    }
  }

  // The first address in [address, end) for which contains() says other than it says for `address`; else `end`.
  std::uintptr_t end_of_piece(std::uintptr_t address, std::uintptr_t end) const {
    const bool wanted = contains(address);
    std::uintptr_t at = address;
    while (at < end) {
      if (chunks_ == nullptr || at >= kEnd) return end;
      const std::uintptr_t chunk_end = (at / kChunkBytes + 1) * kChunkBytes;
      const std::uint8_t chunk = chunks_[at / kChunkBytes].load(std::memory_order_acquire);
      if (chunk == kSome) {
        at = bytes_of_pages(first_other(page_of(at), page_of(chunk_end), wanted));
        if (at < chunk_end) break;
      } else if ((chunk == kAll) != wanted) {
        break;
      } else {
        at = chunk_end;
      }
    }
    return std::min(std::max(page_floor(at), address), end);
  }

  bool overlaps(std::uintptr_t address, std::size_t length) const {
    if (bytes() == 0 || length == 0 || address >= kEnd) return false;
    return contains(address) || end_of_piece(address, address + length) != address + length;
  }

  // Whole pages. Both return how many pages changed.
  std::size_t add(std::uintptr_t address, std::size_t length) { return change(address, length, true); }
  std::size_t remove(std::uintptr_t address, std::size_t length) { return change(address, length, false); }

  // For readers outside of the process: as contains(), where load(address, pointer to a value) reads what is there
  // and says whether it could.
  std::uintptr_t chunks_address() const { return reinterpret_cast<std::uintptr_t>(chunks_); }
  std::uintptr_t bits_address() const { return reinterpret_cast<std::uintptr_t>(bits_); }
  template <typename Load>
  static bool contains_from_outside(std::uintptr_t chunks, std::uintptr_t bits, std::uintptr_t address, Load&& load) {
    std::uint8_t chunk = kNone;
    if (chunks == 0 || address >= kEnd || !load(chunks + address / kChunkBytes, &chunk)) return false;
    if (chunk != kSome) return chunk == kAll;
    std::uint64_t word = 0;
    return load(bits + page_of(address) / 64 * sizeof word, &word) && (word >> (page_of(address) % 64) & 1) != 0;
  }

 private:
  static constexpr std::uintptr_t kChunkBytes = kGiB;
  static constexpr std::size_t kChunks = kEnd / kChunkBytes;
  static constexpr std::size_t kWordsOfChunk = kChunkBytes / kPageSize / 64;
  static constexpr std::uint8_t kNone = 0, kSome = 1, kAll = 2;

  static std::uint64_t page_of(std::uintptr_t address) { return address >> kPageShift; }
  std::atomic<std::uint64_t>& word_of(std::uint64_t page) const { return bits_[page / 64]; }

  // The first page of [page, end), which lie in one GiB, for which the bits say other than `wanted`; else `end`.
  std::uint64_t first_other(std::uint64_t page, std::uint64_t end, bool wanted) const {
    while (page < end) {
      std::uint64_t bits = word_of(page).load(std::memory_order_relaxed);
      if (wanted) bits = ~bits;
      bits &= ~std::uint64_t{0} << (page % 64);
      page = page / 64 * 64;
      if (bits != 0) return page + static_cast<std::uint64_t>(std::countr_zero(bits));
      page += 64;
    }
    return end;
  }

  std::size_t change(std::uintptr_t address, std::size_t length, bool add) {
    std::size_t changed = 0;
    for (std::uintptr_t at = address, end = address + length, next = 0; at < end; at = next) {
      next = std::min((at / kChunkBytes + 1) * kChunkBytes, end);
      changed += change_in_chunk(at, next, add);
    }
    if (add)
      pages_->fetch_add(changed, std::memory_order_relaxed);
    else
      pages_->fetch_sub(changed, std::memory_order_relaxed);
    return changed;
  }

  std::size_t change_in_chunk(std::uintptr_t from, std::uintptr_t to, bool add) {
    std::atomic<std::uint8_t>& chunk = chunks_[from / kChunkBytes];
    const std::uint8_t before = chunk.load(std::memory_order_relaxed);
    if (before == (add ? kAll : kNone)) return 0;
    const std::size_t pages = pages_of_bytes(to - from);
    if (to - from == kChunkBytes) {
      const std::size_t changed = before == kSome ? count_of_others(page_of(from), add) : pages;
      chunk.store(add ? kAll : kNone, std::memory_order_release);
      return changed;
    }
    if (before != kSome) fill(from, before == kAll);
    std::size_t changed = 0;
    for (std::uint64_t page = page_of(from), end = page_of(to); page < end;) {
      const std::uint64_t bit = page % 64, count = std::min<std::uint64_t>(end - page, 64 - bit);
      const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
      std::atomic<std::uint64_t>& word = word_of(page);
      const std::uint64_t old = word.load(std::memory_order_relaxed);  // only we write
      word.store(add ? old | mask : old & ~mask, std::memory_order_relaxed);
      changed += static_cast<std::size_t>(std::popcount((add ? ~old : old) & mask));
      page += count;
    }
    return changed;
  }

  std::size_t count_of_others(std::uint64_t first, bool add) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kWordsOfChunk; ++i) {
      const std::uint64_t bits = word_of(first + i * 64).load(std::memory_order_relaxed);
      count += static_cast<std::size_t>(std::popcount(add ? ~bits : bits));
    }
    return count;
  }

  // All of a GiB was alike; from now on its bits count.
  void fill(std::uintptr_t address, bool all) {
    const std::uint64_t first = page_of(address) / (kWordsOfChunk * 64) * (kWordsOfChunk * 64);
    for (std::size_t i = 0; i < kWordsOfChunk; ++i)
      if (std::atomic<std::uint64_t>& word = word_of(first + i * 64);
          word.load(std::memory_order_relaxed) != (all ? ~std::uint64_t{0} : 0))
        word.store(all ? ~std::uint64_t{0} : 0, std::memory_order_relaxed);
    chunks_[address / kChunkBytes].store(kSome, std::memory_order_release);
  }

  std::atomic<std::uint8_t>* chunks_ = nullptr;
  std::atomic<std::uint64_t>* bits_ = nullptr;
  std::atomic<std::size_t>* pages_ = nullptr;  // behind the chunks, so that the set can be moved
};

}  // namespace hinterland
