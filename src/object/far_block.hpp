// A block of the far log: which of its units live, which are kept, and on which page they lie (far_log.hpp).
#pragma once

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "far/device.hpp"
#include "object/words.hpp"

namespace hinterland::object {

inline constexpr std::uint32_t kBlockUnits = kPageSize / kUnit;
inline constexpr std::size_t kPackedMax = kPageSize / 2;
using UnitMap = std::array<std::uint64_t, kBlockUnits / 64>;

struct PageRecord {
  far::FarPage page;
  std::atomic<std::uint32_t> holders;
  std::atomic<std::uint32_t> live_units;  // of all blocks on it
  std::uint64_t fork = 0;                 // the last in which it was counted for the child
};

// A half of a block lies on a page of its own: a page takes what lives in two blocks of any fill, where halves do not
// have to stay together.
inline constexpr std::uint32_t kHalfUnits = kBlockUnits / 2;

// All zeros: unused. Guarded by `held`.
struct Block {
  struct Half {
    PageRecord* record;  // nullptr: nothing of it lives
    std::uint16_t live_units;
    std::uint16_t base_unit;  // on the page, of the first kept unit
    bool moved;               // what is kept lies at base_unit; otherwise all of it, in place
  };
  std::atomic<std::uint32_t> held;  // a spin lock: for some instructions
  bool open;                        // its page is not written yet
  bool joined;                      // an object lies across the middle: the halves lie one behind the other
  std::array<Half, 2> halves;
  std::uint64_t seed;  // of the checks of its records: no other block has it, nor had (far_log.hpp)
  UnitMap* kept;       // of halves that were moved
  UnitMap live;

  Half& half_of(std::uint32_t unit) { return halves[unit / kHalfUnits]; }
};

class HeldBlock {
 public:
  explicit HeldBlock(Block& block) : block_(block) {
    // acquire: pairs with the release below. Held for some instructions, so a thread that waits longer was caught
    // while another is not running.
    for (int spins = 0; block_.held.exchange(1, std::memory_order_acquire) != 0; ++spins)
      spins % 64 == 63 ? static_cast<void>(raw::call(SYS_sched_yield)) : __builtin_ia32_pause();
  }
  ~HeldBlock() { block_.held.store(0, std::memory_order_release); }
  HeldBlock(const HeldBlock&) = delete;
  HeldBlock& operator=(const HeldBlock&) = delete;

 private:
  Block& block_;
};

inline void set_units(UnitMap& map, std::uint32_t first, std::uint32_t count, bool value) {
  for (std::uint32_t unit = first; unit < first + count;) {
    const std::uint32_t bit = unit % 64, run = std::min(64 - bit, first + count - unit);
    const std::uint64_t mask = (run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1) << bit;
    value ? map[unit / 64] |= mask : map[unit / 64] &= ~mask;
    unit += run;
  }
}

inline std::uint32_t units_before(const UnitMap& map, std::uint32_t unit) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < unit / 64; ++i) count += static_cast<std::uint32_t>(std::popcount(map[i]));
  if (unit % 64 == 0) return count;
  return count + static_cast<std::uint32_t>(std::popcount(map[unit / 64] & ((std::uint64_t{1} << unit % 64) - 1)));
}

// On the page of its half.
inline std::uint32_t place_of(Block& block, std::uint32_t unit) {
  const Block::Half& half = block.half_of(unit);
  if (!half.moved) return unit;
  return half.base_unit + units_before(*block.kept, unit) - units_before(*block.kept, unit / kHalfUnits * kHalfUnits);
}

// Calls each(half, units of it) for the halves that a stretch of units lies in.
template <typename Each>
void for_halves(Block& block, std::uint32_t first, std::uint32_t count, const Each& each) {
  const std::uint32_t in_first = first < kHalfUnits ? std::min(count, kHalfUnits - first) : 0;
  if (in_first != 0) each(block.halves[0], in_first);
  if (in_first != count) each(block.halves[1], count - in_first);
}

}  // namespace hinterland::object
