// What a hint looks at first: one byte a page, which says whether the page is there and whether it may
// be written without a fault. The words say the same (page_table.hpp), but take two loads and a decision; a hinted
// program reads this byte inline (include/hinterland/hint.h), millions of times a second.
//
// Only an accelerator. A stale "there" costs the fault that would have come without the hint, a stale "not there" a
// call that looks at the word. So nothing here is ordered with anything. Who holds the page's busy bit stores; hints
// also store what they find without it. (docs/adr/0016-hint-map.md)
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/error.hpp"
#include "base/space_limit.hpp"
#include "paging/page/page_word.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class HintMap {
 public:
  static constexpr std::uint8_t kThere = 1, kWritable = 2, kAsked = 4;  // HL_THERE, HL_WRITABLE, HL_ASKED of hint.h

  // Address space; memory is taken only for pages that were there at the program's first hint or since.
  Status create(std::uint64_t pages) {
    bytes_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(pages));
    if (bytes_ == nullptr)
      return std::unexpected(Error::make(ENOMEM, "no address space for the map that hints look at")
                                 .remedy("use a smaller --window, or raise %s", limit_on_space()));
    return {};
  }
  const std::atomic<std::uint8_t>* bytes() const { return bytes_; }

  // The program has hints: the map is kept from now on. Programs without pay a branch when a page is let go of.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  void activate() {
    if (!active()) active_.store(bytes_ != nullptr, std::memory_order_relaxed);
  }

  void note(PageIndex page, PageWord word) {
    if (active()) store(page, word);
  }
  // Nobody's but the kernel's: no hint need ask for it. If it becomes far memory later, who moves it first notes what
  // is true then.
  void note_local(PageIndex page) { bytes_[page.value].store(kThere | kWritable, std::memory_order_relaxed); }
  std::uint8_t of(PageIndex page) const { return bytes_[page.value].load(std::memory_order_relaxed); }

  // Policies: whether a hint, or a mover, has noted the page as there since this was last called. Takes the note
  // away, so that the next hint asks, and notes it again: an access bit, for hints.
  // (docs/adr/0019-recency-from-hints.md)
  bool was_hinted(PageIndex page) {
    if (!active() || (of(page) & kThere) == 0) return false;
    bytes_[page.value].store(kAsked, std::memory_order_relaxed);
    return true;
  }

 private:
  void store(PageIndex page, PageWord word) {
    std::uint8_t value = 0;
    if (word.state() == PageState::resident) value = word.dirty() ? kThere | kWritable : kThere;
    if (of(page) != value) bytes_[page.value].store(value, std::memory_order_relaxed);
  }

  std::atomic<std::uint8_t>* bytes_ = nullptr;
  std::atomic<bool> active_{false};
};

}  // namespace hinterland
