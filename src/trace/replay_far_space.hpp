// Where pages lie on the device, as far::Space places them (src/far/space.cpp), for one process: what is written
// together lies side by side where there is room, and what was let go leaves gaps that are filled later.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

namespace hinterland::trace {

class ReplayFarSpace {
 public:
  static constexpr std::uint64_t kNone = 0;
  // So many places, to be let go one by one.
  std::vector<std::uint64_t> take(std::uint32_t count);
  // kNone: nothing happens. *place becomes kNone.
  void let_go(std::uint64_t* place);

 private:
  static constexpr std::uint32_t kSlabPages = 4096, kReusePagesMin = kSlabPages / 8, kRunPages = 64;
  struct Slab {
    std::bitset<kSlabPages> taken;
    std::uint32_t used = 0;
  };

  bool take_run(std::uint32_t shortest, std::size_t count, std::vector<std::uint64_t>& places);
  void find_slab();

  std::vector<Slab> slabs_{1};
  std::size_t current_ = 0;
  std::uint32_t cursor_ = 0;  // page of the current slab where the next search begins
};

}  // namespace hinterland::trace
