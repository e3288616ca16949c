// All interleavings of two movers on one page, with the fault handler as the third where one of them faults; and random
// schedules of many movers.
//
// HINTERLAND_SCHEDULES=all explores more: two pages at a time, every trouble. HINTERLAND_SCHEDULES="far write evict"
// explores one state and pair, with the number of its states. HINTERLAND_MACHINE_STEPS=N: so many random steps.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "far/test_support.hpp"
#include "paging/testing/explorer.hpp"

namespace hinterland::testing {
namespace {

using Kind = MoverKind;
using Pair = std::pair<Kind, Kind>;

constexpr std::array kStarts = {Start::untouched, Start::dirty, Start::clean, Start::parked, Start::far, Start::freed};
constexpr std::uint64_t kSchedulesMax = 500'000;  // of one pair: none comes near

std::string wanted() {
  const char* text = std::getenv("HINTERLAND_SCHEDULES");
  return text == nullptr ? "" : text;
}
bool everything() { return wanted() == "all"; }

// The same mover twice only where there can be two. Calls of the program on its own mappings exclude each other by
// map_mutex, and two of which one takes the mapping from under the other are the program's own mistake. The heap
// neither gives back nor takes while the program forks, and nobody else knows its free memory (docs/architecture.md,
// locks).
std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs = {{Kind::read, Kind::read},          {Kind::read, Kind::write},
                             {Kind::write, Kind::write},        {Kind::evict, Kind::evict_direct},
                             {Kind::evict, Kind::reuse},        {Kind::evict_direct, Kind::reuse},
                             {Kind::write, Kind::reuse},        {Kind::read, Kind::reuse}};
  for (Kind first : {Kind::read, Kind::write})
    for (Kind second : {Kind::evict, Kind::evict_direct}) pairs.emplace_back(first, second);
  const std::vector<Kind> calls = {Kind::drop, Kind::protect, Kind::fork, Kind::fork_fails, Kind::unmap, Kind::remap};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (Kind other : {Kind::read, Kind::write, Kind::evict, Kind::evict_direct}) pairs.emplace_back(other, calls[i]);
    for (std::size_t j = i; j < calls.size(); ++j)
      if (j < 4 || calls[i] == Kind::fork) pairs.emplace_back(calls[i], calls[j]);
  }
  return pairs;
}

// Freed pages belong to the heap: the program does not touch them before they are taken again.
bool makes_sense(Pair pair, Start start) {
  if (start != Start::freed) return true;
  auto heap = [](Kind kind) { return kind == Kind::evict || kind == Kind::evict_direct || kind == Kind::reuse; };
  return heap(pair.first) && heap(pair.second);
}

class PageMachineSchedules : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::quiet); }

  void explore_all(InterleavingOptions options, const char* name) {
    for (Start start : kStarts)
      for (Pair pair : all_pairs()) {
        if (!makes_sense(pair, start)) continue;
        options.start = start;
        explore_pair(pair, options);
        if (HasFailure()) return;
      }
    std::fprintf(stderr, "%s: %llu states and pairs of movers, %llu states, %llu schedules, %llu steps\n", name,
                 static_cast<unsigned long long>(pairs_), static_cast<unsigned long long>(total_.states),
                 static_cast<unsigned long long>(total_.schedules), static_cast<unsigned long long>(total_.steps));
  }

 private:
  void explore_pair(Pair pair, const InterleavingOptions& options) {
    std::string name =
        std::string(name_of(options.start)) + " " + name_of(pair.first) + " " + name_of(pair.second);
    bool this_one = wanted() == name;
    if (!wanted().empty() && !everything() && !this_one) return;
    Exploration done = explore(
        [&] {
          auto interleaving = std::make_unique<Interleaving>(options);
          interleaving->add(pair.first);
          interleaving->add(pair.second);
          return interleaving;
        },
        kSchedulesMax);
    EXPECT_EQ(done.wrong, "") << name << ", trouble: " << name_of(options.trouble)
                              << (options.move ? ", move" : ", copy") << (options.direct ? ", direct" : ", queued")
                              << (options.write_protect ? "" : ", without write protection");
    EXPECT_TRUE(done.complete) << name;
    ++pairs_;
    total_.schedules += done.schedules;
    total_.states += done.states;
    total_.steps += done.steps;
    if (this_one)
      std::fprintf(stderr, "%s: %llu states, %llu schedules\n", name.c_str(),
                   static_cast<unsigned long long>(done.states), static_cast<unsigned long long>(done.schedules));
  }

  std::uint64_t pairs_ = 0;
  Exploration total_;
};

InterleavingOptions one_page() {
  InterleavingOptions options;
  options.pages = everything() ? 2 : 1;
  return options;
}

TEST_F(PageMachineSchedules, OverMove) { explore_all(one_page(), "move"); }

TEST_F(PageMachineSchedules, OverCopiesAndQueuedRequests) {
  InterleavingOptions options = one_page();
  options.move = options.direct = options.second_chance = false;
  explore_all(options, "copy, queued");
}

}  // namespace
}  // namespace hinterland::testing
