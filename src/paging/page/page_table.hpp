// The page words of all places that pages may have, in two levels: a directory with one entry per group of 16
// neighbouring pages, and the cells (words) of the groups, given out in the order in which groups are first used and
// never taken back. A page touched far from all others costs the 128 bytes of its group and 4 in the directory, not a
// page of ours.
//
//   directory: | 0 | 33 | 0 | 32 | ...     by group; 0: never used
//   cells:     | shared: always untouched, read-only | group 3's | group 1's | ...
//
// The order of use also numbers the pages densely, for arrays of others that are kept by page.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/space_limit.hpp"
#include "paging/page/page_word.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class PageTable {
 public:
  static constexpr std::uint32_t kGroupPages = 16;
  static constexpr std::uint32_t kChunkPages = 512;  // what is noted as used, so that scans skip empty space
  // The cells of these groups stand for all groups that were never used: one page of ours, which cannot be written.
  static constexpr std::uint32_t kSharedGroups = kPageSize / (kGroupPages * sizeof(PageCell));
  static constexpr std::uint32_t kSharedCells = kSharedGroups * kGroupPages;

  // Address space for the words of `used_most` pages, which lie anywhere among `pages`, below 2^36; memory is taken
  // only for groups in use.
  Status create(std::uint64_t pages, std::uint32_t used_most) {
    pages_ = pages;
    groups_ = used_most / kGroupPages + 1;
    std::size_t directory_groups = pages / kGroupPages + 1;
    std::size_t places = std::size_t{groups_} + kSharedGroups;
    cells_ = static_cast<PageCell*>(reserve_zeroed(places * kGroupPages * sizeof *cells_));
    directory_ = static_cast<std::atomic<std::uint32_t>*>(reserve_zeroed(directory_groups * sizeof *directory_));
    group_at_ = static_cast<std::uint32_t*>(reserve_zeroed(places * sizeof *group_at_));
    chunks_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(pages / kChunkPages + 1));
    if (cells_ == nullptr || directory_ == nullptr || group_at_ == nullptr || chunks_ == nullptr ||
        raw_mprotect(cells_, kPageSize, PROT_READ) != 0)
      return std::unexpected(Error::make(ENOMEM, "no address space for the page table")
                                 .remedy("use a smaller --window, or raise %s", limit_on_space()));
    return {};
  }

  Status create(std::uint32_t pages) { return create(pages, pages); }

  // For readers outside of the process.
  std::uintptr_t words_address() const { return reinterpret_cast<std::uintptr_t>(cells_); }
  std::uintptr_t directory_address() const { return reinterpret_cast<std::uintptr_t>(directory_); }
  std::uintptr_t chunks_address() const { return reinterpret_cast<std::uintptr_t>(chunks_); }

  // The page's cell. Of a group that was never used: one that reads as untouched and must not be locked.
  PageCell& operator[](PageIndex page) { return cells_[number_of(page)]; }
  const PageCell& operator[](PageIndex page) const { return cells_[number_of(page)]; }

  // Pages have indexes below this.
  std::uint64_t places() const { return pages_; }

  bool is_used(PageIndex page) const { return place_of(page) != 0; }

  // Dense numbers, below dense_count(), for pages in use; the same for the life of the process. The pages of a group,
  // from a multiple of kGroupPages on, follow each other.
  std::uint32_t dense_count() const { return groups_ * kGroupPages; }
  std::uint32_t dense_used() const {  // numbers below this are of pages in use
    return (next_.load(std::memory_order_acquire) - kSharedGroups) * kGroupPages;  // pairs with use()
  }
  std::uint32_t dense_of(PageIndex page) const { return number_of(page) - kSharedCells; }
  PageIndex page_of(std::uint32_t dense) const {
    return first_of(dense / kGroupPages + kSharedGroups) + dense % kGroupPages;
  }

  // Must come before the page's cell is locked: gives the group cells of its own. Any thread.
  void note_used(PageIndex page) {
    if (!is_used(page)) use(page);
  }

  // Calls visit(PageIndex, PageCell&) for the pages of [first, first + count) in groups that were ever used.
  template <typename Visit>
  void for_each_used(PageIndex first, std::uint64_t count, Visit&& visit) {
    std::uint64_t end = first.value + count;
    for (std::uint64_t at = first.value; at < end;) {
      bool chunk_used = chunks_[at / kChunkPages].load() != 0;
      std::uint32_t step = chunk_used ? kGroupPages : kChunkPages;
      std::uint64_t step_end = std::min((at / step + 1) * step, end);
      if (!chunk_used || !is_used({at})) {
        at = step_end;
        continue;
      }
      for (; at < step_end; ++at) visit(PageIndex{at}, (*this)[{at}]);
    }
  }

  // The same for all of them, in the order in which groups were first used: takes time for what was used, not
  // for what might be. Groups that are first used meanwhile may be left out.
  template <typename Visit>
  void for_all_used(Visit&& visit) {
    std::uint32_t end = next_.load(std::memory_order_acquire);  // pairs with use()
    for (std::uint32_t place = kSharedGroups; place < end; ++place)
      for (std::uint32_t i = 0; i < kGroupPages; ++i) visit(first_of(place) + i, cells_[place * kGroupPages + i]);
  }

  // In a forked child, where nobody holds it.
  void after_fork_in_child() { mutex_.reset_after_fork(); }

 private:
  // acquire: pairs with use()
  std::uint32_t place_of(PageIndex page) const {
    return directory_[page.value / kGroupPages].load(std::memory_order_acquire);
  }
  std::uint32_t number_of(PageIndex page) const {
    return place_of(page) * kGroupPages + static_cast<std::uint32_t>(page.value % kGroupPages);
  }
  PageIndex first_of(std::uint32_t place) const { return {std::uint64_t{group_at_[place]} * kGroupPages}; }
  void use(PageIndex page) {
    LockGuard guard(mutex_);
    if (is_used(page)) return;
    auto group = static_cast<std::uint32_t>(page.value / kGroupPages);
    std::uint32_t place = next_.load(std::memory_order_relaxed);
    HL_CHECK_OP(place, <, groups_ + kSharedGroups);  // who maps memory sees to it (Window::allows)
    group_at_[place] = group;
    chunks_[page.value / kChunkPages].store(1);
    // seq_cst stores: ordered before the cell's lock, which unmap's scan looks at after this note. They also release:
    // who reads the entry finds group_at_.
    directory_[group].store(place);
    next_.store(place + 1, std::memory_order_release);  // who sees it finds group_at_: pairs with for_all_used()
  }

  PageCell* cells_ = nullptr;
  std::atomic<std::uint32_t>* directory_ = nullptr;
  std::uint32_t* group_at_ = nullptr;  // by place in cells_; written once, before the directory's entry
  std::atomic<std::uint8_t>* chunks_ = nullptr;
  std::uint32_t groups_ = 0;
  std::uint64_t pages_ = 0;
  Mutex mutex_;                                      // for use()
  std::atomic<std::uint32_t> next_ = kSharedGroups;  // stored with mutex_ held
};

}  // namespace hinterland
