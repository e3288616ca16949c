// All interleavings of two movers on one page, with the fault handler as the third where one of them faults; and random
// schedules of many movers.
//
// HINTERLAND_SCHEDULES=all explores every pair from every state with every trouble; without it, what matters most.
// HINTERLAND_MACHINE_STEPS=N: so many random steps (10000000 takes about a minute).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "far/test_support.hpp"
#include "paging/testing/explorer.hpp"

namespace hinterland::testing {
namespace {

using Kind = MoverKind;
using Pair = std::pair<Kind, Kind>;

constexpr std::uint64_t kSchedulesMax = 2'000'000;  // of one pair: none comes near

[[maybe_unused]] bool everything() {
  const char* wanted = std::getenv("HINTERLAND_SCHEDULES");
  return wanted != nullptr && std::strcmp(wanted, "all") == 0;
}

// The same mover twice only where there can be two. Calls of the program on its own mappings exclude each other by
// map_mutex, and two of which one takes the mapping from under the other are the program's own mistake. The heap neither gives back nor takes while the program forks, and nobody
// else knows its free memory (docs/architecture.md, locks).
std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs = {{Kind::read, Kind::read},   {Kind::read, Kind::write},         {Kind::write, Kind::write},
                             {Kind::evict, Kind::evict_direct}, {Kind::evict, Kind::reuse}, {Kind::evict_direct, Kind::reuse},
                             {Kind::write, Kind::reuse}, {Kind::read, Kind::reuse}};
  const std::vector<Kind> calls = {Kind::drop, Kind::protect, Kind::fork, Kind::fork_fails, Kind::unmap, Kind::remap};
  for (Kind first : {Kind::read, Kind::write})
    for (Kind second : {Kind::evict, Kind::evict_direct}) pairs.emplace_back(first, second);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (Kind other : {Kind::read, Kind::write, Kind::evict, Kind::evict_direct}) pairs.emplace_back(other, calls[i]);
    for (std::size_t j = i; j < calls.size(); ++j)
      if (j < 4 || calls[i] == Kind::fork) pairs.emplace_back(calls[i], calls[j]);
  }
  return pairs;
}

struct Total {
  std::uint64_t pairs = 0, schedules = 0, states = 0, steps = 0;
};

void explore_pair(Pair pair, const InterleavingOptions& options, Total* total) {
  Exploration done = explore(
      [&] {
        auto interleaving = std::make_unique<Interleaving>(options);
        interleaving->add(pair.first);
        interleaving->add(pair.second);
        return interleaving;
      },
      kSchedulesMax);
  EXPECT_EQ(done.wrong, "") << name_of(pair.first) << " and " << name_of(pair.second) << ", pages "
                            << name_of(options.start) << ", trouble: " << name_of(options.trouble)
                            << (options.move ? ", move" : ", copy") << (options.direct ? ", direct" : ", queued")
                            << (options.write_protect ? "" : ", without write protection");
  EXPECT_TRUE(done.complete);
  ++total->pairs;
  total->schedules += done.schedules;
  total->states += done.states;
  total->steps += done.steps;
}

constexpr std::array kStarts = {Start::untouched, Start::dirty, Start::clean, Start::parked, Start::far, Start::freed};

// Freed pages belong to the heap: the program does not touch them before they are taken again.
bool makes_sense(Pair pair, Start start) {
  if (start != Start::freed) return true;
  auto heap = [](Kind kind) { return kind == Kind::evict || kind == Kind::evict_direct || kind == Kind::reuse; };
  return heap(pair.first) && heap(pair.second);
}

void explore_all(InterleavingOptions options, const char* name) {
  Total total;
  for (Start start : kStarts)
    for (Pair pair : all_pairs()) {
      if (!makes_sense(pair, start)) continue;
      options.start = start;
      explore_pair(pair, options, &total);
      if (::testing::Test::HasFailure()) return;
    }
  std::fprintf(stderr, "%s: %llu pairs of movers and states, %llu states, %llu schedules, %llu steps\n", name,
               static_cast<unsigned long long>(total.pairs), static_cast<unsigned long long>(total.states),
               static_cast<unsigned long long>(total.schedules), static_cast<unsigned long long>(total.steps));
}

TEST(PageMachineSchedules, TwoMoversOverMove) { explore_all({}, "move"); }

}  // namespace
}  // namespace hinterland::testing
