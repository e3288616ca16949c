// Guesses whether a page that a read brings in will be written while it is here.
//
// A page mapped protected costs a second fault when it is written; one mapped writable costs a write-back when it is
// not. Pages near each other are used alike, so outcomes are kept per block of 512 pages, and for the whole program
// where a block has no history. One guess in 16 says "not written" whatever the history: only pages that are
// protected show what becomes of them, and without those the forecast would never unlearn.
//
// Any thread may call anything. Counts are relaxed and may lose an outcome to a race: they only steer.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "paging/page/page_word.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

class WriteForecast {
 public:
  static constexpr std::uint32_t kBlockPages = 512;
  static constexpr std::uint32_t kSampleEvery = 16;

  // A byte a block, of address space; memory is taken only for blocks with a history.
  Status create(std::uint64_t pages) {
    bytes_ = pages / kBlockPages + 1;
    blocks_ = static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(bytes_));
    if (blocks_ == nullptr) return std::unexpected(Error::make(ENOMEM, "no address space for the write forecast"));
    return {};
  }
  // Nobody asks any more. (The pager's lives as long as the process.)
  void destroy() {
    if (blocks_ != nullptr) raw_munmap(blocks_, bytes_);
    blocks_ = nullptr;
  }

  bool expects_write(PageIndex page) {
    return expects_write_unsampled(page) && guesses_.fetch_add(1, std::memory_order_relaxed) % kSampleEvery != 0;
  }
  // For the neighbours in a run: one that differed would cut the run in pieces.
  bool expects_write_unsampled(PageIndex page) {
    std::uint8_t share = block(page).load(std::memory_order_relaxed);
    if (share == kUnknown) share = program_.load(std::memory_order_relaxed);
    return share > kHalf;
  }
  // Instead, the last page of every second long run is to show what becomes of it.
  bool samples(PageRun run) {
    return run.count >= kSampleEvery && runs_.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
  }

  // Whether a page that was written is to be remembered as such, in its word too.
  bool learns() const { return learns_; }
  void learn_nothing() { learns_ = false; }  // before any other thread is there

  // What became of a page that was mapped protected.
  void note_written(PageIndex page) { note(page, true); }
  void note_left_clean(PageIndex page) { note(page, false); }

 private:
  // Shares of written pages: 1 is none, 255 is all.
  static constexpr std::uint8_t kUnknown = 0, kHalf = 128;

  std::atomic<std::uint8_t>& block(PageIndex page) { return blocks_[page.value / kBlockPages]; }

  void note(PageIndex page, bool written) {
    if (!learns_) return;
    move(block(page), written, 4);
    move(program_, written, 16);
  }
  static void move(std::atomic<std::uint8_t>& share, bool written, int slowness) {
    int old = share.load(std::memory_order_relaxed);
    if (old == kUnknown) old = kHalf;
    int step = ((written ? 255 : 1) - old) / slowness;
    if (step == 0) step = written ? (old < 255) : -(old > 1);
    share.store(static_cast<std::uint8_t>(old + step), std::memory_order_relaxed);
  }

  std::atomic<std::uint8_t>* blocks_ = nullptr;
  std::size_t bytes_ = 0;
  std::atomic<std::uint8_t> program_{kUnknown};
  std::atomic<std::uint32_t> guesses_{0}, runs_{0};
  bool learns_ = true;
};

// A page that was written each time it was here is brought in writable, and then nothing shows whether it still is:
// one time in four it is not expected to be the next time. Belongs to one thread.
class WriteRecheck {
 public:
  bool goes_on_expecting() { return ++pages_ % 4 != 0; }

 private:
  std::uint32_t pages_ = 0;
};

}  // namespace hinterland
