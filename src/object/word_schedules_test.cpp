// All interleavings of movers on the same far objects: the protocol of words.hpp as the room's own code has it, under
// a scheduler (testing/word_interleaving.hpp).
//
// HINTERLAND_SCHEDULES=all explores more than fits into a test run. HINTERLAND_SCHEDULES="one far read evacuate"
// explores one shape, start and group of movers, with the number of its states.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "far/test_support.hpp"
#include "object/testing/word_interleaving.hpp"

namespace hinterland::object::testing {
namespace {

using hinterland::testing::Exploration;
using hinterland::testing::explore;
using Kind = MoverKind;
using Movers = std::vector<MoverKind>;

constexpr std::uint64_t kSchedulesMax = 2'000'000;  // of one group: none comes near
const std::vector<Start> kAll = {Start::cold, Start::hot, Start::clean, Start::far};

// Counting lines takes ten times as long, and a few groups go through as many lines as all.
#ifdef HINTERLAND_COVERAGE
constexpr std::uint64_t kEvery = 10, kRandomSteps = 50'000;
#else
constexpr std::uint64_t kEvery = 1, kRandomSteps = 500'000;
#endif

std::string wanted() {
  const char* text = std::getenv("HINTERLAND_SCHEDULES");
  return text == nullptr ? "" : text;
}
bool explore_everything() { return wanted() == "all"; }

std::string name_of_group(const Movers& movers, const WordOptions& options) {
  std::string name = std::string(name_of(options.shape)) + " " + name_of(options.start);
  for (const Kind mover : movers) name += std::string(" ") + name_of(mover);
  return name;
}

unsigned long long number(std::uint64_t value) { return value; }

class WordSchedules : public ::testing::Test {
 protected:
  void explore_group(const Movers& movers, const WordOptions& options, bool prune = true) {
    const std::string name = name_of_group(movers, options);
    const bool this_one = wanted() == name;
    if (!wanted().empty() && !explore_everything() && !this_one) return;
    if (offered_++ % kEvery != 0 && !this_one) return;
    const Exploration done = explore(
        [&] {
          auto interleaving = std::make_unique<WordInterleaving>(options);
          for (const Kind mover : movers) interleaving->add(mover);
          return interleaving;
        },
        kSchedulesMax, prune);
    EXPECT_EQ(done.wrong, "") << name << ", trouble: " << name_of(options.trouble)
                              << (options.direct ? ", direct" : ", by channel");
    EXPECT_TRUE(done.complete) << name;
    ++groups_;
    total_.schedules += done.schedules;
    total_.states += done.states;
    total_.steps += done.steps;
    if (this_one || explore_everything())
      std::fprintf(stderr, "%s: %llu states, %llu schedules, %llu steps\n", name.c_str(), number(done.states),
                   number(done.schedules), number(done.steps));
  }
  // From some starts, or with HINTERLAND_SCHEDULES from all.
  void explore_groups(const std::vector<Movers>& groups, WordOptions options, const std::vector<Start>& some = kAll) {
    for (const Start start : wanted().empty() ? some : kAll)
      for (const Movers& movers : groups) {
        options.start = start;
        explore_group(movers, options);
        if (HasFailure()) return;
      }
  }
  void report(const char* name) const {
    std::fprintf(stderr, "%s: %llu groups of movers and start states, %llu states, %llu schedules, %llu steps\n",
                 name, number(groups_), number(total_.states), number(total_.schedules), number(total_.steps));
  }

 private:
  std::uint64_t offered_ = 0, groups_ = 0;
  Exploration total_;
};

TEST_F(WordSchedules, ThreadsOfTheProgram) {
  explore_groups({{Kind::read, Kind::read}, {Kind::read, Kind::write}, {Kind::write, Kind::prefetch}}, {});
  explore_groups({{Kind::read, Kind::read_renewed}}, {}, {Start::far});
  if (!wanted().empty())
    explore_groups({{Kind::write, Kind::write}, {Kind::read, Kind::prefetch}, {Kind::read, Kind::read, Kind::write}},
                   {});
  report("threads of the program");
}

TEST_F(WordSchedules, OneAndAnEvacuator) {
  explore_groups({{Kind::read, Kind::evacuate},
                  {Kind::write, Kind::evacuate},
                  {Kind::prefetch, Kind::evacuate},
                  {Kind::reset, Kind::evacuate}},
                 {});
  explore_groups({{Kind::move, Kind::evacuate}, {Kind::read_renewed, Kind::evacuate}}, {}, {Start::hot});
  if (!wanted().empty()) explore_groups({{Kind::make, Kind::evacuate}}, {});
  report("one and an evacuator");
}

// A scope that an evacuator has not seen in one round it waits for in the next.
TEST_F(WordSchedules, TwoRounds) {
  WordOptions options;
  options.rounds = 2;
  explore_groups({{Kind::read, Kind::evacuate}}, options, {Start::hot});
  explore_groups({{Kind::write, Kind::evacuate}}, options, {Start::clean});  // what is written is clean no more
  report("two rounds");
}

TEST_F(WordSchedules, TwoAndAnEvacuator) {
  if (wanted().empty()) GTEST_SKIP() << "only with HINTERLAND_SCHEDULES=all";
  explore_groups({{Kind::read, Kind::read, Kind::evacuate},
                  {Kind::read, Kind::write, Kind::evacuate},
                  {Kind::read, Kind::prefetch, Kind::evacuate}},
                 {});
  report("two and an evacuator");
}

// Two objects in a region: one of them stays, and the region with it; and both are busy together.
TEST_F(WordSchedules, TwoObjects) {
  WordOptions options;
  options.shape = Shape::two;
  explore_groups({{Kind::write_other, Kind::evacuate}, {Kind::reset, Kind::evacuate}}, options, {Start::hot});
  if (!wanted().empty()) explore_groups({{Kind::read, Kind::evacuate}, {Kind::move, Kind::evacuate}}, options);
  report("two objects");
}

TEST_F(WordSchedules, TwoEvacuators) {
  WordOptions options;
  options.shape = Shape::apart;
  explore_groups({{Kind::evacuate, Kind::evacuate}}, options, {Start::cold});
  if (!wanted().empty())
    explore_groups({{Kind::evacuate, Kind::evacuate, Kind::write}, {Kind::evacuate, Kind::evacuate, Kind::move}},
                   options);
  report("two evacuators");
}

TEST_F(WordSchedules, LargeObjects) {
  WordOptions options;
  options.shape = Shape::large;
  options.direct = false;
  explore_groups({{Kind::read, Kind::read}, {Kind::reset, Kind::evacuate}}, options);
  explore_groups({{Kind::write, Kind::evacuate}}, options, {Start::cold});
  if (!wanted().empty()) explore_groups({{Kind::read, Kind::evacuate}, {Kind::move, Kind::evacuate}}, options);
  report("large objects");
}

TEST_F(WordSchedules, ObjectsThatHoldOthers) {
  WordOptions options;
  options.shape = Shape::holder;
  explore_groups({{Kind::read_other, Kind::evacuate}, {Kind::reset, Kind::evacuate}}, options,
                 {Start::cold, Start::hot, Start::far});
  if (!wanted().empty())
    explore_groups(
        {{Kind::write_other, Kind::evacuate}, {Kind::take_out, Kind::evacuate}, {Kind::evacuate, Kind::evacuate}},
        options);
  report("objects that hold others");
}

TEST_F(WordSchedules, SharedObjects) {
  WordOptions options;
  options.shape = Shape::shared;
  explore_groups({{Kind::drop, Kind::drop}}, options);
  if (!wanted().empty()) explore_groups({{Kind::drop, Kind::drop, Kind::evacuate}}, options);
  report("shared objects");
}

TEST_F(WordSchedules, Guards) {
  WordOptions options;
  options.guards = true;
  explore_groups({{Kind::guard_read, Kind::evacuate}, {Kind::guard_write, Kind::evacuate}}, options);
  if (!wanted().empty()) explore_groups({{Kind::guard_read, Kind::guard_write, Kind::evacuate}}, options);
  report("guards");
}

TEST_F(WordSchedules, AReadFails) {
  WordOptions options;
  options.direct = false;
  options.trouble = Trouble::one_read_fails;
  explore_groups({{Kind::read, Kind::read}, {Kind::read, Kind::prefetch}, {Kind::write, Kind::evacuate}}, options,
                 {Start::far});
  if (!wanted().empty()) explore_groups({{Kind::move, Kind::evacuate}}, options);
  report("a read fails");
}

TEST_F(WordSchedules, AWriteFails) {
  WordOptions options;
  options.direct = false;
  options.trouble = Trouble::one_write_fails;
  explore_groups({{Kind::write, Kind::evacuate}, {Kind::reset, Kind::evacuate}}, options, {Start::cold});
  options.shape = Shape::large;
  explore_groups({{Kind::reset, Kind::evacuate}}, options, {Start::cold});
  if (!wanted().empty()) explore_groups({{Kind::write, Kind::evacuate}}, options);
  report("a write fails");
}

// Nothing is explored less than it should be because two states were taken for the same: every schedule to its end.
TEST_F(WordSchedules, EveryScheduleOfTwo) {
  if (wanted().empty()) GTEST_SKIP() << "only with HINTERLAND_SCHEDULES=all";
  WordOptions options;
  options.start = Start::far;
  explore_group({Kind::prefetch, Kind::prefetch}, options, false);
  report("every schedule of two");
}

// All that a seed decides, so that one seed is enough to see a schedule again.
std::string random_schedule(std::uint64_t seed, std::uint64_t* steps) {
  struct Setting {
    Shape shape;
    Movers movers;
  };
  static const std::vector<Setting> settings = {
      {Shape::one, {Kind::read, Kind::write, Kind::prefetch, Kind::evacuate}},
      {Shape::apart, {Kind::write, Kind::read_other, Kind::evacuate, Kind::evacuate}},
      {Shape::apart, {Kind::move, Kind::write_other, Kind::evacuate, Kind::evacuate}},
      {Shape::two, {Kind::reset, Kind::write_other, Kind::make, Kind::evacuate}},
      {Shape::holder, {Kind::take_out, Kind::make, Kind::evacuate, Kind::evacuate}},
      {Shape::holder, {Kind::read_other, Kind::write_other, Kind::evacuate, Kind::evacuate}},
      {Shape::holder, {Kind::reset, Kind::make, Kind::evacuate, Kind::evacuate}},
      {Shape::shared, {Kind::drop, Kind::drop, Kind::make, Kind::evacuate}}};
  static constexpr std::array kTroubles = {Trouble::none, Trouble::none, Trouble::one_read_fails,
                                           Trouble::one_write_fails};
  std::mt19937_64 random(seed);
  const Setting& setting = settings[random() % settings.size()];
  WordOptions options;
  options.shape = setting.shape;
  options.start = kAll[random() % kAll.size()];
  options.trouble = kTroubles[random() % kTroubles.size()];
  options.direct = options.trouble == Trouble::none && random() % 2 == 0;
  options.rounds = 3;
  WordInterleaving interleaving(options);
  for (const Kind mover : setting.movers) interleaving.add(mover);
  std::string wrong = interleaving.run([&](auto ready) { return random() % ready.size(); }, UINT64_MAX);
  *steps += interleaving.scheduler().steps();
  if (wrong.empty()) return wrong;
  return wrong + " (" + name_of_group(setting.movers, options) + ", trouble: " + name_of(options.trouble) + ")";
}

TEST_F(WordSchedules, RandomSchedulesOfFourMovers) {
  const char* asked = std::getenv("HINTERLAND_MACHINE_STEPS");
  const std::uint64_t wanted_steps = asked != nullptr ? std::strtoull(asked, nullptr, 10) : kRandomSteps;
  std::uint64_t seed = far::testing::test_seed(), done = 0;
  for (std::mt19937_64 seeds(seed); done < wanted_steps; seed = seeds())
    ASSERT_EQ(random_schedule(seed, &done), "") << "HINTERLAND_TEST_SEED=" << seed;
  std::fprintf(stderr, "%llu random steps\n", number(done));
}

}  // namespace
}  // namespace hinterland::object::testing
