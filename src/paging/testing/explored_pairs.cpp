#include "paging/testing/explored_pairs.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace hinterland::testing {
namespace {

constexpr std::uint64_t kSchedulesMax = 500'000;  // of one pair: none comes near

// Counting lines takes ten times as long, and a few pairs go through as many lines as all.
#ifdef HINTERLAND_COVERAGE
constexpr std::uint64_t kEvery = 10;
#else
constexpr std::uint64_t kEvery = 1;
#endif

std::string wanted() {
  const char* text = std::getenv("HINTERLAND_SCHEDULES");
  return text == nullptr ? "" : text;
}

std::string name_of_pair(const Pair& pair, const InterleavingOptions& options) {
  std::string start = name_of(options.start);
  if (options.start_of_last) start += std::string("+") + name_of(*options.start_of_last);
  return start + " " + name_of(pair.first) + " " + name_of(pair.second);
}

std::string settings_of(const InterleavingOptions& options) {
  return std::string("trouble: ") + name_of(options.trouble) + (options.move ? ", move" : ", copy") +
         (options.direct ? ", direct" : ", queued") + (options.write_protect ? "" : ", without write protection") +
         ", pages: " + std::to_string(options.pages);
}

unsigned long long number(std::uint64_t value) { return value; }

}  // namespace

bool explore_everything() { return wanted() == "all"; }

void ExploredPairs::explore_pair(const Pair& pair, const InterleavingOptions& options) {
  std::string name = name_of_pair(pair, options);
  bool this_one = wanted() == name;
  if (!wanted().empty() && !explore_everything() && !this_one) return;
  if (offered_++ % kEvery != 0 && !this_one) return;
  Exploration done = explore(
      [&] {
        auto interleaving = std::make_unique<Interleaving>(options);
        interleaving->add(pair.first);
        interleaving->add(pair.second);
        return interleaving;
      },
      kSchedulesMax);
  EXPECT_EQ(done.wrong, "") << name << ", " << settings_of(options);
  EXPECT_TRUE(done.complete) << name << ", " << settings_of(options);
  ++pairs_;
  total_.schedules += done.schedules;
  total_.states += done.states;
  total_.steps += done.steps;
  if (this_one)
    std::fprintf(stderr, "%s, %s: %llu states, %llu schedules\n", name.c_str(), settings_of(options).c_str(),
                 number(done.states), number(done.schedules));
}

void ExploredPairs::report(const char* name) const {
  std::fprintf(stderr, "%s: %llu states and pairs of movers, %llu states, %llu schedules, %llu steps\n", name,
               number(pairs_), number(total_.states), number(total_.schedules), number(total_.steps));
}

}  // namespace hinterland::testing
