// What the program wants of single pages, beside their words: to stay local, and to stay out of core files. One byte
// a page, changed by any thread, read by evictors and, from outside, by `hinterland core`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/space_limit.hpp"
#include "base/units.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class PageMarks {
 public:
  // The program excluded the page from core files (MADV_DONTDUMP); kept across decommit, gone with the mapping.
  static constexpr std::uint8_t kNotDumped = 0x80;
  // An evictor was offered the page while it was held: the policy has forgotten it.
  static constexpr std::uint8_t kOffered = 0x40;
  // The other bits count who needs the page local: the kernel writes to it where it cannot wait for a fault (robust
  // and priority-inheriting mutexes, the end of a thread; in signal mode any system call), or may have pinned it
  // where that is not seen. A full count stays until the memory is given back.
  static constexpr std::uint8_t kHeldMax = 0x3f;
  static constexpr std::uint32_t kChunkPages = 512;
  // Of a chunk: some of its pages have marks; all of it was excluded from core files. So a program that excludes a
  // terabyte of addresses (Haskell's runtime does) costs half a MiB, and not a byte for each page.
  static constexpr std::uint8_t kSomeMarked = 0x01, kNoneDumped = 0x02;

  Status create(std::uint64_t pages) {
    marks_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(std::uint64_t{pages} + pages / kChunkPages + 1));
    if (marks_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for the page marks")
                                 .remedy("use a smaller --window, or raise %s", limit_on_space()));
    chunks_ = marks_ + pages;
    return {};
  }

  bool is_held(PageIndex page) const { return (of(page) & kHeldMax) != 0; }
  bool is_dumped(PageIndex page) const {
    return (of(page) & kNotDumped) == 0 && (chunk_of(page.value) & kNoneDumped) == 0;
  }
  // Where the marks are, a byte a page; the chunks' bytes follow those of all pages.
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(marks_); }

  void hold(PageIndex page) {
    change(page, [](std::uint8_t mark) {
      return (mark & kHeldMax) == kHeldMax ? mark : static_cast<std::uint8_t>(mark + 1);
    });
  }
  // True when nobody holds the page any longer, and the policy must be told of it.
  bool let_go(PageIndex page) {
    std::uint8_t before = change(page, [](std::uint8_t mark) {
      std::uint8_t held = mark & kHeldMax;
      if (held == 0 || held == kHeldMax) return mark;
      return static_cast<std::uint8_t>(held == 1 ? (mark & ~kOffered) - 1 : mark - 1);
    });
    return (before & kHeldMax) == 1 && (before & kOffered) != 0;
  }
  // An evictor's, which has the page's busy bit: false when nobody holds the page. Else let_go() will tell the
  // policy.
  bool note_offered(PageIndex page) {
    if (!is_held(page)) return false;
    std::uint8_t before = change(page, [](std::uint8_t mark) {
      return (mark & kHeldMax) == 0 ? mark : static_cast<std::uint8_t>(mark | kOffered);
    });
    return (before & kHeldMax) != 0;
  }
  // Under the map lock, as clear() and copy().
  void set_dumped(PageIndex first, std::uint64_t count, bool dumped) {
    if (dumped && !any_.load(std::memory_order_relaxed)) return;
    for_each_chunk(first.value, count, [this, dumped](std::uint64_t from, std::uint64_t to) {
      dumped ? include_in_dumps(from, to) : exclude_from_dumps(from, to);
    });
  }
  // The pages are others now: no marks.
  void clear(PageIndex first, std::uint64_t count) {
    if (!any_.load(std::memory_order_relaxed)) return;
    for_each_chunk(first.value, count, [this](std::uint64_t from, std::uint64_t to) { divide(from, to); });
    for_each(first, count, [this](PageIndex page) { change(page, [](std::uint8_t) { return std::uint8_t{0}; }); });
  }
  // The bytes of `from` go to `to`, and what was asked of them.
  void copy(PageIndex from, PageIndex to, std::uint64_t count) {
    if (!any_.load(std::memory_order_relaxed)) return;
    for_each(from, count, [&](PageIndex page) {
      std::uint8_t mark = of(page);
      change({to.value + (page.value - from.value)}, [mark](std::uint8_t) { return mark; });
    });
    for_each_chunk(from.value, count, [&](std::uint64_t begin, std::uint64_t end) {
      if ((chunk_of(begin) & kNoneDumped) != 0) set_dumped({to.value + (begin - from.value)}, end - begin, false);
    });
  }
  // Calls visit(PageIndex) for each page that has a mark of its own.
  template <typename Visit>
  void for_each(PageIndex first, std::uint64_t count, Visit&& visit) const {
    // relaxed: who marked the pages asked for it before, in this thread or under the map lock
    if (!any_.load(std::memory_order_relaxed)) return;
    std::uint64_t end = first.value + count;
    for (std::uint64_t at = first.value; at < end;) {
      std::uint64_t chunk_end = at / kChunkPages * kChunkPages + kChunkPages;
      bool used = (chunk_of(at) & kSomeMarked) != 0;
      for (; used && at < chunk_end && at < end; ++at)
        if (of({at}) != 0) visit(PageIndex{at});
      at = chunk_end;
    }
  }

 private:
  // relaxed: ordered by the page's busy bit, which hold() takes after marking and evictors before looking
  std::uint8_t of(PageIndex page) const {
    return any_.load(std::memory_order_relaxed) ? marks_[page.value].load(std::memory_order_relaxed) : 0;
  }
  std::uint8_t chunk_of(std::uint64_t page) const {
    return chunks_[page / kChunkPages].load(std::memory_order_relaxed);
  }
  void note(std::uint64_t page, std::uint8_t bit) {
    any_.store(true, std::memory_order_relaxed);
    if ((chunk_of(page) & bit) == 0) chunks_[page / kChunkPages].fetch_or(bit, std::memory_order_relaxed);
  }
  // Calls visit(first, end) for the part of each chunk that lies in the range.
  template <typename Visit>
  static void for_each_chunk(std::uint64_t first, std::uint64_t count, Visit&& visit) {
    for (std::uint64_t at = first, end = first + count, next = 0; at < end; at = next) {
      next = std::min(at / kChunkPages * kChunkPages + kChunkPages, end);
      visit(at, next);
    }
  }
  // These pages of a chunk will differ from its others, or are all of it: that none is dumped is noted page by page
  // for the others. A reader from outside that comes meanwhile sees too many that are not dumped, never too few.
  void divide(std::uint64_t from, std::uint64_t to) {
    if ((chunk_of(from) & kNoneDumped) == 0) return;
    std::uint64_t begin = from / kChunkPages * kChunkPages;
    for (std::uint64_t at = begin; to - from != kChunkPages && at < begin + kChunkPages; ++at)
      set_one_dumped({at}, false);
    chunks_[from / kChunkPages].fetch_and(static_cast<std::uint8_t>(~kNoneDumped), std::memory_order_relaxed);
  }
  // Pages of one chunk, both.
  void exclude_from_dumps(std::uint64_t from, std::uint64_t to) {
    if (to - from == kChunkPages) return note(from, kNoneDumped);
    if ((chunk_of(from) & kNoneDumped) != 0) return;
    for (std::uint64_t at = from; at < to; ++at) set_one_dumped({at}, false);
  }
  void include_in_dumps(std::uint64_t from, std::uint64_t to) {
    divide(from, to);
    if ((chunk_of(from) & kSomeMarked) == 0) return;
    for (std::uint64_t at = from; at < to; ++at) set_one_dumped({at}, true);
  }
  void set_one_dumped(PageIndex page, bool dumped) {
    change(page, [dumped](std::uint8_t mark) {
      return static_cast<std::uint8_t>(dumped ? mark & ~kNotDumped : mark | kNotDumped);
    });
  }
  template <typename Change>
  std::uint8_t change(PageIndex page, Change&& next) {
    note(page.value, kSomeMarked);
    std::uint8_t mark = marks_[page.value].load(std::memory_order_relaxed);
    while (!marks_[page.value].compare_exchange_weak(mark, next(mark), std::memory_order_relaxed)) {
    }
    return mark;
  }

  std::atomic<std::uint8_t>* marks_ = nullptr;
  std::atomic<std::uint8_t>* chunks_ = nullptr;
  std::atomic<bool> any_{false};  // most programs never mark a page
};

}  // namespace hinterland
