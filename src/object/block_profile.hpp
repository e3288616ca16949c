// Which sizes of blocks are worth being objects of the window: counted by one run (--record-sites), read at the start
// of others. By size, because what a program allocates at one place has a size of its own mostly, and a size costs
// nothing to ask for (docs/adr/0073-loops-on-copies-of-blocks.md). The text lies beside the profile of hints,
// FILE.objects:
//
//     hinterland objects 1
//     48 100000 30000 29000      bytes of the block, rounded up to 16; how many were made; how often one was brought;
//                                and how often its page would have been, had they been on pages
//
// Lines that begin with # say something to people. Sizes that are not there stay on pages.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::object {

class BlockProfile {
 public:
  static constexpr std::size_t kUnit = 16, kSizes = 2048 / kUnit + 1;

  // --- counting. Any thread.
  // `pages`: how many would be local, had blocks been on pages. Before the first of the others; once.
  void begin_counting(std::size_t pages);
  bool counts() const { return recent_ != nullptr; }
  void made(std::size_t bytes) { add(made_, bytes); }
  void brought(std::size_t bytes, std::uintptr_t address);
  std::string text() const;

  // --- choosing. Not while others ask.
  // The error says which line is none of a profile; then all sizes are as before.
  Status choose(std::string_view text);
  bool any_pays() const { return !chosen_ || std::ranges::find(pays_, true) != pays_.end(); }
  bool pays(std::size_t bytes) const { return !chosen_ || bytes >= kUnit * kSizes || pays_[unit_of(bytes)]; }

 private:
  using Counts = std::array<std::atomic<std::uint64_t>, kSizes>;  // relaxed: statistics
  static std::size_t unit_of(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }
  static void add(Counts& counts, std::size_t bytes) {
    if (const std::size_t unit = unit_of(bytes); unit < kSizes) counts[unit].fetch_add(1, std::memory_order_relaxed);
  }

  Counts made_{}, brought_{}, pages_{};
  // By hash, the page that was brought last: about what memory for as many pages would hold.
  std::unique_ptr<std::atomic<std::uintptr_t>[]> recent_;
  std::size_t recent_count_ = 0;
  bool chosen_ = false;
  std::array<bool, kSizes> pays_{};
};

// The process's.
BlockProfile& block_profile();
// Before the first block: reads the profile there is, and says what is wrong with one; or none where this run counts,
// because HINTERLAND_RECORD_SITES names a file. False: by the profile no size pays.
bool choose_block_profile();
// Where this run counts: from here on, to the process's end by exit().
void begin_block_counts(std::uint64_t local_bytes);

}  // namespace hinterland::object
