// All interleavings of two movers on two pages side by side, where two matter: both are taken in one batch, and in
// one run where they are neighbours in the same state; a fault on the last brings the first along; and what the
// program calls names one of them or both.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "paging/testing/explored_pairs.hpp"

namespace hinterland::testing {
namespace {

using Kind = MoverKind;

// Calls of the program on its mappings, and of its heap. A remap is a remap that keeps the old place, and an unmap.
std::vector<MoverSpec> calls() {
  std::vector<MoverSpec> all = {Kind::remap_keep, Kind::fork, {Kind::protect, Part::first}};
  if (explore_everything()) all.emplace_back(Kind::remap);
  for (Kind kind : {Kind::drop, Kind::unmap, Kind::reuse})
    for (Part part : {Part::all, Part::first, Part::last}) all.emplace_back(kind, part);
  return all;
}

std::vector<MoverSpec> accesses() {
  std::vector<MoverSpec> all;
  for (Kind kind : {Kind::read, Kind::write})
    for (Part part : {Part::first, Part::last}) all.emplace_back(kind, part);
  return all;
}

// One of them with each of the others.
std::vector<Pair> each_with(MoverSpec one, const std::vector<MoverSpec>& others) {
  std::vector<Pair> pairs;
  for (MoverSpec other : others) pairs.emplace_back(one, other);
  return pairs;
}

std::vector<Pair> operator+(std::vector<Pair> one, const std::vector<Pair>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// Both pages leave together, while one of them is wanted, given away, or taken by the other evictor.
std::vector<Pair> of_eviction() {
  return each_with(Kind::evict, accesses()) + each_with(Kind::evict, calls()) +
         each_with(Kind::evict, {Kind::evict_direct});
}

// Both come together, where they are in the same state.
std::vector<Pair> of_read_ahead() {
  const MoverSpec reads(Kind::read, Part::last), writes(Kind::write, Part::last);
  return each_with(reads, {{Kind::read, Part::first}, {Kind::write, Part::first}}) + each_with(reads, calls()) +
         each_with(writes, {{Kind::write, Part::first}}) + each_with(writes, calls());
}

struct Starts {
  Start first, last;
};
constexpr std::array kSame = {Start::untouched, Start::dirty, Start::clean, Start::parked, Start::far, Start::freed};
// What a batch or a run of read-ahead meets when the two differ.
constexpr std::array kMixed = {Starts{Start::dirty, Start::clean}, Starts{Start::far, Start::parked},
                               Starts{Start::freed, Start::dirty}};
constexpr std::array kMixedMore = {Starts{Start::clean, Start::dirty},   Starts{Start::dirty, Start::far},
                                   Starts{Start::parked, Start::far},    Starts{Start::clean, Start::far},
                                   Starts{Start::untouched, Start::far}, Starts{Start::freed, Start::far}};

bool works_on(MoverSpec mover, bool last) {
  bool one_page = mover.kind == Kind::read || mover.kind == Kind::write;
  return mover.part == (last ? Part::last : Part::first) || (mover.part == Part::all && (last || !one_page));
}

// Freed pages belong to the heap: the program does not touch them before they are taken again.
bool makes_sense(const Pair& pair, Starts starts) {
  auto fits = [&](MoverSpec mover) {
    if (mover.kind == Kind::evict || mover.kind == Kind::evict_direct || mover.kind == Kind::reuse ||
        mover.kind == Kind::fork)
      return true;
    return !(starts.first == Start::freed && works_on(mover, false)) &&
           !(starts.last == Start::freed && works_on(mover, true));
  };
  return fits(pair.first) && fits(pair.second);
}

class PageMachineTwoPages : public ExploredPairs {
 protected:
  void explore_each(const std::vector<Pair>& pairs, Starts starts, InterleavingOptions options) {
    options.start = starts.first;
    if (starts.last != starts.first) options.start_of_last = starts.last;
    for (const Pair& pair : pairs) {
      if (!makes_sense(pair, starts)) continue;
      explore_pair(pair, options);
      if (HasFailure()) return;
    }
  }
  void explore_same(const std::vector<Pair>& pairs, const InterleavingOptions& options) {
    for (Start start : kSame) explore_each(pairs, {start, start}, options);
  }
  void explore_mixed(const std::vector<Pair>& pairs, const InterleavingOptions& options) {
    for (Starts starts : kMixed) explore_each(pairs, starts, options);
    for (Starts starts : kMixedMore)
      if (explore_everything()) explore_each(pairs, starts, options);
  }
};

InterleavingOptions two_pages() {
  InterleavingOptions options;
  options.pages = 2;
  options.read_ahead = true;
  // Both are taken, and then their frames expire; with 2, also what came back meanwhile is taken.
  options.rounds_max = explore_everything() ? 2 : 1;
  return options;
}

InterleavingOptions by_copy_and_queued() {
  InterleavingOptions options = two_pages();
  options.move = options.direct = options.second_chance = false;
  return options;
}

TEST_F(PageMachineTwoPages, LeaveTogether) {
  explore_same(of_eviction(), two_pages());
  report("two pages leave");
}

TEST_F(PageMachineTwoPages, LeaveFromDifferentStates) {
  explore_mixed(of_eviction(), two_pages());
  report("two different pages leave");
}

TEST_F(PageMachineTwoPages, ArriveTogether) {
  explore_same(of_read_ahead(), two_pages());
  explore_mixed(of_read_ahead(), two_pages());
  report("two pages arrive");
}

TEST_F(PageMachineTwoPages, LeaveByCopy) {
  explore_same(of_eviction(), by_copy_and_queued());
  report("two pages leave by copy");
}

TEST_F(PageMachineTwoPages, ArriveFromAQueue) {
  explore_same(of_read_ahead(), by_copy_and_queued());
  report("two pages arrive from a queue");
}

// What goes wrong below, for one of the two or for both.
class PageMachineTwoPagesTroubles : public PageMachineTwoPages, public ::testing::WithParamInterface<Trouble> {};

TEST_P(PageMachineTwoPagesTroubles, KeepTheInvariants) {
  bool here = GetParam() == Trouble::one_read_fails || GetParam() == Trouble::short_calls;
  if (!here && !explore_everything()) GTEST_SKIP() << "only with HINTERLAND_SCHEDULES=all";
  InterleavingOptions options = two_pages();
  options.trouble = GetParam();
  options.direct = GetParam() != Trouble::one_read_fails;  // pages that are copied from where they lie cannot fail
  std::vector<MoverSpec> others = {
      {Kind::write, Part::first}, {Kind::drop, Part::first}, Kind::remap_keep, Kind::fork};
  if (explore_everything()) others.emplace_back(Kind::write, Part::last);
  auto pairs = each_with(Kind::evict, others) + each_with({Kind::read, Part::last}, others);
  explore_same(pairs, options);
  report(name_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Each, PageMachineTwoPagesTroubles,
                         ::testing::Values(Trouble::one_read_fails, Trouble::one_write_fails, Trouble::pinned,
                                           Trouble::shared, Trouble::move_again, Trouble::short_calls),
                         [](const auto& trouble) {
                           std::string name = name_of(trouble.param);
                           std::erase(name, '-');
                           return name;
                         });

// Otherwise the pairs above would explore less than they say. When all is done each page is looked at once more, and
// then nothing is left to fetch only where both have come.
TEST(PageMachineTwoPagesSetting, AFaultOnTheLastPageBringsTheFirst) {
  for (bool direct : {true, false})
    for (Part part : {Part::first, Part::last}) {
      InterleavingOptions options = two_pages();
      options.start = Start::far;
      options.direct = direct;
      Interleaving interleaving(options);
      interleaving.add({Kind::read, part});
      EXPECT_EQ(interleaving.run([](auto) { return std::size_t{0}; }), "");
      EXPECT_EQ(interleaving.machine().far_fetches(), part == Part::last ? 0u : 1u);
    }
}

}  // namespace
}  // namespace hinterland::testing
