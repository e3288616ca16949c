// All interleavings of two movers on one page, with the fault handler as the third where one of them faults; and
// random schedules of many movers.
//
// HINTERLAND_SCHEDULES: see testing/explored_pairs.hpp. HINTERLAND_MACHINE_STEPS=N: so many random steps. Two pages
// at a time are in page_machine_two_pages_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "far/test_support.hpp"
#include "paging/testing/explored_pairs.hpp"

namespace hinterland::testing {
namespace {

using Kind = MoverKind;

constexpr std::array kStarts = {Start::untouched, Start::dirty, Start::clean,
                                Start::parked,    Start::far,   Start::freed};
#ifdef HINTERLAND_COVERAGE
constexpr std::uint64_t kRandomSteps = 50'000;
#else
constexpr std::uint64_t kRandomSteps = 500'000;
#endif

// The same mover twice only where there can be two. Calls of the program on its own mappings exclude each other by
// map_mutex, and two of which one takes the mapping from under the other are the program's own mistake. The heap
// gives back and takes while another thread forks, and nobody else knows its free memory. Pages are held while the
// program uses them.
std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs = {
      {Kind::read, Kind::read},          {Kind::read, Kind::write},  {Kind::write, Kind::write},
      {Kind::evict, Kind::evict_direct}, {Kind::evict, Kind::reuse}, {Kind::evict_direct, Kind::reuse},
      {Kind::write, Kind::reuse},        {Kind::read, Kind::reuse},  {Kind::reuse, Kind::fork},
      {Kind::reuse, Kind::fork_fails},   {Kind::hold, Kind::fork},   {Kind::hold, Kind::evict}};
  for (Kind first : {Kind::read, Kind::write})
    for (Kind second : {Kind::evict, Kind::evict_direct}) pairs.emplace_back(first, second);
  for (Kind other : {Kind::read, Kind::write, Kind::evict, Kind::evict_direct, Kind::drop, Kind::protect, Kind::unmap,
                     Kind::fork, Kind::fork_fails, Kind::replace})
    pairs.emplace_back(other, Kind::replace);
  for (Kind other :
       {Kind::read, Kind::write, Kind::evict, Kind::drop, Kind::remap_keep, Kind::fork, Kind::replace, Kind::patch})
    pairs.emplace_back(other, Kind::patch);
  const std::vector<Kind> calls = {Kind::drop,       Kind::protect, Kind::fork, Kind::fork_fails,
                                   Kind::remap_keep, Kind::unmap,   Kind::remap};
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
  auto can_meet = [](MoverSpec mover) {
    return mover.kind == Kind::evict || mover.kind == Kind::evict_direct || mover.kind == Kind::reuse ||
           mover.kind == Kind::fork || mover.kind == Kind::fork_fails;
  };
  return can_meet(pair.first) && can_meet(pair.second);
}

class PageMachineSchedules : public ExploredPairs {
 protected:
  void explore_all(InterleavingOptions options, const char* name) {
    for (Start start : kStarts)
      for (const Pair& pair : all_pairs()) {
        if (!makes_sense(pair, start) || !asked_for(pair)) continue;
        options.start = start;
        explore_pair(pair, options);
        if (HasFailure()) return;
      }
    report(name);
  }

  std::vector<Kind> only_;  // unless everything is asked for; empty: all

 private:
  bool asked_for(const Pair& pair) const {
    auto has = [&](MoverSpec mover) { return std::find(only_.begin(), only_.end(), mover.kind) != only_.end(); };
    if (explore_everything()) return true;
    // The second evictor is of the same code as the first: what matters is the two of them together.
    if (pair.second.kind == Kind::evict_direct && pair.first.kind != Kind::evict) return false;
    if (pair.first.kind == Kind::evict_direct) return false;
    return only_.empty() || (has(pair.first) && has(pair.second));
  }
};

InterleavingOptions one_page() {
  InterleavingOptions options;
  options.pages = 1;
  if (!explore_everything()) options.rounds_max = 3;  // taken, taken again when it came back, and frames expire
  return options;
}

const std::vector<Kind> kEssential = {Kind::write, Kind::evict,   Kind::drop, Kind::remap_keep,
                                      Kind::fork,  Kind::replace, Kind::patch};

TEST_F(PageMachineSchedules, OverMove) { explore_all(one_page(), "move"); }

TEST_F(PageMachineSchedules, OverCopiesAndQueuedRequests) {
  InterleavingOptions options = one_page();
  options.move = options.direct = options.second_chance = false;
  only_ = kEssential;
  explore_all(options, "copy, queued");
}

// Pages that are written go straight on from their frames.
TEST_F(PageMachineSchedules, NothingIsWorthAFrame) {
  InterleavingOptions options = one_page();
  options.keeps_nothing_in_frames = true;
  only_ = kEssential;
  explore_all(options, "nothing in frames");
}

// Two threads that fault, and a handler for each of them (or both for one: whichever reads the message).
TEST_F(PageMachineSchedules, TwoHandlers) {
  InterleavingOptions options = one_page();
  options.two_handlers = true;
  if (explore_everything()) return explore_all(options, "two handlers");
  const std::vector<std::pair<Start, Pair>> some = {{Start::far, {Kind::read, Kind::read}},
                                                    {Start::far, {Kind::write, Kind::evict}},
                                                    {Start::far, {Kind::read, Kind::fork}},
                                                    {Start::parked, {Kind::read, Kind::read}},
                                                    {Start::parked, {Kind::read, Kind::drop}}};
  for (const auto& [start, pair] : some) {
    options.start = start;
    explore_pair(pair, options);
  }
  report("two handlers");
}

// What goes wrong below. One of them here, the others with explore_everything().
class PageMachineTroubles : public PageMachineSchedules, public ::testing::WithParamInterface<Trouble> {};

TEST_P(PageMachineTroubles, KeepTheInvariants) {
  bool here = GetParam() == Trouble::reads_fail;
  if (!here && !explore_everything()) GTEST_SKIP() << "only with HINTERLAND_SCHEDULES=all";
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

// All that a seed decides, so that one seed is enough to see a round again.
InterleavingOptions random_setting(std::mt19937_64& random) {
  static constexpr std::array kTroubles = {Trouble::none, Trouble::none, Trouble::one_write_fails,
                                           Trouble::short_calls, Trouble::one_read_fails};
  InterleavingOptions options;
  options.pages = 12;
  options.frames = 32;
  options.budget_pages = random() % 3 == 0 ? 64 : 8;
  options.move = random() % 2 == 0;
  options.second_chance = random() % 5 != 0;
  options.trouble = kTroubles[random() % kTroubles.size()];
  options.two_handlers = random() % 2 == 0;
  options.direct = random() % 2 == 0 && options.trouble != Trouble::one_read_fails;
  return options;
}

// More movers than two, on more pages than fit: three threads of the program, one that changes its mappings, one
// that forks, both evictors, and the handler; over devices and kernels that fail now and then.
TEST_F(PageMachineSchedules, RandomSchedulesOfManyMovers) {
  const char* asked = std::getenv("HINTERLAND_MACHINE_STEPS");
  std::uint64_t steps = asked != nullptr ? std::strtoull(asked, nullptr, 10) : kRandomSteps, done = 0;
  std::uint64_t seed = far::testing::test_seed();
  for (std::mt19937_64 seeds(seed); done < steps; seed = seeds()) {
    std::mt19937_64 random(seed);
    InterleavingOptions options = random_setting(random);
    Interleaving interleaving(options);
    for (std::uint64_t thread = 0; thread < 3; ++thread)
      interleaving.add_random({Kind::read, Kind::read, Kind::write, Kind::write}, 3000, random());
    interleaving.add_random(
        {Kind::drop, Kind::unmap, Kind::protect, Kind::remap, Kind::remap_keep, Kind::reuse, Kind::read, Kind::write},
        300, random());
    interleaving.add_random({Kind::fork, Kind::fork_fails}, 100, random());
    interleaving.add_random({Kind::replace, Kind::patch}, 100, random());
    interleaving.add_random({Kind::evict}, 300, random());
    interleaving.add_random({Kind::evict_direct}, 300, random());
    std::string wrong = interleaving.run([&](auto ready) { return random() % ready.size(); });
    done += interleaving.scheduler().steps();
    ASSERT_EQ(wrong, "") << "HINTERLAND_TEST_SEED=" << seed << ", trouble: " << name_of(options.trouble);
  }
  std::fprintf(stderr, "%llu random steps\n", static_cast<unsigned long long>(done));
}

// Whether this evictor is in the midst of writing pages: none of them is between its frame and its word.
bool writes_pages(Interleaving& interleaving, std::size_t evictor, std::uint32_t pages) {
  Core& core = interleaving.machine().core();
  bool writes = false;
  for (std::uint32_t page = 0; page < pages; ++page) {
    PageWord word = core.pages[{page}].load();
    if (interleaving.holder(page) != evictor || word.state() != PageState::leaving) continue;
    if (core.frames[word.frame()].state.peek() == FrameState::parked) return false;
    writes = true;
  }
  return writes;
}

// I5: an evictor that gets no CPU in the middle of a batch keeps its frames, and so the ring fills up behind it. The
// program does not go on beyond its budget meanwhile.
TEST_F(PageMachineSchedules, AnEvictorThatStandsStillDoesNotLetTheProgramGrow) {
  InterleavingOptions options;
  options.start = Start::untouched;
  options.pages = 12;
  options.budget_pages = 4;
  Interleaving interleaving(options);
  interleaving.add_random({Kind::evict}, 20, 1);  // the first mover
  interleaving.add_random({Kind::write}, 300, 2);
  Core& core = interleaving.machine().core();
  std::int64_t most = 0;
  int stood_still = 0;
  std::string wrong = interleaving.run([&](std::span<const std::size_t> ready) -> std::size_t {
    most = std::max(most, core.budget.local());
    if (ready.size() < 2 || ready[0] != 0) return 0;
    bool stands = writes_pages(interleaving, 0, options.pages);
    stood_still += stands;
    return stands || core.budget.local() < 3 ? 1 : 0;
  });
  EXPECT_EQ(wrong, "");
  EXPECT_GT(stood_still, 100);
  EXPECT_LE(most, 2 * options.budget_pages);  // all of it in flight, and one page after the other in its place
}

}  // namespace
}  // namespace hinterland::testing
