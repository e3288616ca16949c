// All interleavings of two movers on one page, with the fault handler as the third where one of them faults; and
// random schedules of many movers.
//
// HINTERLAND_SCHEDULES=all explores more: two pages at a time, every trouble. HINTERLAND_SCHEDULES="far write evict"
// explores one state and pair, with the number of its states. HINTERLAND_MACHINE_STEPS=N: so many random steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "far/test_support.hpp"
#include "paging/testing/explorer.hpp"

namespace hinterland::testing {
namespace {

using Kind = MoverKind;
using Pair = std::pair<Kind, Kind>;

constexpr std::array kStarts = {Start::untouched, Start::dirty, Start::clean,
                                Start::parked,    Start::far,   Start::freed};
constexpr std::uint64_t kSchedulesMax = 500'000;  // of one pair: none comes near

constexpr std::uint64_t kRandomSteps = 500'000;

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
  std::vector<Pair> pairs = {{Kind::read, Kind::read},   {Kind::read, Kind::write},
                             {Kind::write, Kind::write}, {Kind::evict, Kind::evict_direct},
                             {Kind::evict, Kind::reuse}, {Kind::evict_direct, Kind::reuse},
                             {Kind::write, Kind::reuse}, {Kind::read, Kind::reuse}};
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
  void explore_all(InterleavingOptions options, const char* name) {
    for (Start start : kStarts)
      for (Pair pair : all_pairs()) {
        if (!makes_sense(pair, start) || !asked_for(pair)) continue;
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
    std::string name = std::string(name_of(options.start)) + " " + name_of(pair.first) + " " + name_of(pair.second);
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

  bool asked_for(Pair pair) const {
    auto has = [&](Kind kind) { return std::find(only_.begin(), only_.end(), kind) != only_.end(); };
    if (everything()) return true;
    // The second evictor is of the same code as the first: what matters is the two of them together.
    if (pair.second == Kind::evict_direct && pair.first != Kind::evict) return false;
    if (pair.first == Kind::evict_direct) return false;
    return only_.empty() || (has(pair.first) && has(pair.second));
  }

 protected:
  std::vector<Kind> only_;  // unless everything is; empty: all

 private:
  std::uint64_t pairs_ = 0;
  Exploration total_;
};

InterleavingOptions one_page() {
  InterleavingOptions options;
  options.pages = everything() ? 2 : 1;
  return options;
}

const std::vector<Kind> kEssential = {Kind::write, Kind::evict, Kind::drop, Kind::fork};

TEST_F(PageMachineSchedules, OverMove) { explore_all(one_page(), "move"); }

TEST_F(PageMachineSchedules, OverCopiesAndQueuedRequests) {
  InterleavingOptions options = one_page();
  options.move = options.direct = options.second_chance = false;
  only_ = kEssential;
  explore_all(options, "copy, queued");
}

// What goes wrong below. One of them here, the others with everything().
class PageMachineTroubles : public PageMachineSchedules, public ::testing::WithParamInterface<Trouble> {};

TEST_P(PageMachineTroubles, KeepTheInvariants) {
  bool here = GetParam() == Trouble::reads_fail;
  if (!here && !everything()) GTEST_SKIP() << "only with HINTERLAND_SCHEDULES=all";
  InterleavingOptions options = one_page();
  options.trouble = GetParam();
  options.direct = GetParam() != Trouble::reads_fail;  // pages that are copied from where they lie cannot fail
  only_ = kEssential;
  explore_all(options, name_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Each, PageMachineTroubles,
                         ::testing::Values(Trouble::reads_fail, Trouble::pinned, Trouble::shared, Trouble::move_again,
                                           Trouble::short_calls),
                         [](const auto& trouble) {
                           std::string name = name_of(trouble.param);
                           std::erase(name, '-');
                           return name;
                         });

// More movers than two, on more pages than fit: three threads of the program, one that changes its mappings and
// forks, both evictors, and the handler.
TEST_F(PageMachineSchedules, RandomSchedulesOfManyMovers) {
  const char* asked = std::getenv("HINTERLAND_MACHINE_STEPS");
  std::uint64_t steps = asked != nullptr ? std::strtoull(asked, nullptr, 10) : kRandomSteps, done = 0;
  std::mt19937_64 random(far::testing::test_seed());
  for (unsigned round = 0; done < steps; ++round) {
    std::uint64_t seed = round == 0 && asked == nullptr ? far::testing::test_seed() : random();
    InterleavingOptions options;
    options.pages = 12;
    options.frames = 32;
    options.budget_pages = round % 3 == 0 ? 64 : 8;
    options.move = round % 2 == 0;
    options.direct = round % 4 < 2;
    options.second_chance = round % 5 != 0;
    Interleaving interleaving(options);
    for (std::uint64_t thread = 0; thread < 3; ++thread)
      interleaving.add_random({Kind::read, Kind::read, Kind::write, Kind::write}, 3000, seed + thread);
    interleaving.add_random({Kind::drop, Kind::unmap, Kind::protect, Kind::remap, Kind::fork, Kind::fork_fails,
                             Kind::reuse, Kind::read, Kind::write},
                            300, seed + 3);
    interleaving.add_random({Kind::evict}, 300, seed + 4);
    interleaving.add_random({Kind::evict_direct}, 300, seed + 5);
    std::mt19937_64 scheduler(seed);
    std::string wrong = interleaving.run([&](auto ready) { return scheduler() % ready.size(); });
    done += interleaving.scheduler().steps();
    ASSERT_EQ(wrong, "") << "HINTERLAND_TEST_SEED=" << seed << ", round " << round;
  }
  std::fprintf(stderr, "%llu random steps\n", static_cast<unsigned long long>(done));
}

}  // namespace
}  // namespace hinterland::testing
