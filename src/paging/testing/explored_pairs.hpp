// Explores pairs of movers, each with the fault handler as the third where one of them faults, and says how many
// states there were. For tests of the page machine.
//
// HINTERLAND_SCHEDULES=all explores more than fits into a test run. HINTERLAND_SCHEDULES="far write evict" explores
// one start state and pair, with the number of its states.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "paging/testing/interleaving.hpp"

namespace hinterland::testing {

using Pair = std::pair<MoverSpec, MoverSpec>;

bool explore_everything();  // HINTERLAND_SCHEDULES=all

class ExploredPairs : public ::testing::Test {
 protected:
  // Explores it, unless another is asked for. Fails with the first schedule that goes wrong.
  void explore_pair(const Pair& pair, const InterleavingOptions& options);
  // How many pairs and states so far, on stderr.
  void report(const char* name) const;

 private:
  std::uint64_t offered_ = 0, pairs_ = 0;
  Exploration total_;
};

}  // namespace hinterland::testing
