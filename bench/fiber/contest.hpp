// What a fiber library is measured by. Each figure is one sample; main.cpp takes several and prints median and
// spread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hinterland::bench {

struct FiberFigure {
  std::string name;
  double value;
  std::string unit;
};

// One sample of each: `switch` (a yield to another fiber of the same thread), `spawn` (start and join), `steal` (from
// a fiber being ready on a thread that computes to its start on one that looks for work), `wake/spinning` and
// `wake/sleeping` (from a thread's signal to the fiber that waits for it, whose worker looks for work, or sleeps),
// `memory` (resident bytes a fiber that has run and waits).
std::vector<FiberFigure> measure_hinterland();
std::vector<FiberFigure> measure_boost();

// --- shared by both
double now_ns();
std::size_t resident_bytes();

inline constexpr int kSwitches = 1'000'000, kSpawns = 50'000, kSteals = 400, kWakes = 200, kParked = 10'000;
inline constexpr std::size_t kStackBytes = 64 * 1024;

}  // namespace hinterland::bench
