// The bound beside every policy: no choice of victims does better, and some choice does as well.
#include "trace/belady.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "policy/cache.hpp"
#include "policy/policies.hpp"
#include "policy/testing/libcachesim_misses.hpp"
#include "policy/testing/page_traces.hpp"
#include "trace/replay.hpp"

namespace hinterland::trace {
namespace {

struct Use {
  std::uint64_t page;
  bool first_touch;
};

// By trying every choice.
class AllChoices {
 public:
  explicit AllChoices(const std::vector<Use>& uses, std::size_t room) : uses_(uses), room_(room) {}
  std::uint64_t fewest(std::size_t at = 0, const std::set<std::uint64_t>& held = {}) {
    if (at == uses_.size()) return 0;
    auto [known, fresh] = found_.try_emplace({at, held}, 0);
    if (!fresh) return known->second;
    Use use = uses_[at];
    std::uint64_t least = UINT64_MAX;
    if (held.contains(use.page) || held.size() < room_) {
      least = fewest_with(at, held);
    } else {
      for (std::uint64_t victim : held) {
        std::set<std::uint64_t> others = held;
        others.erase(victim);
        least = std::min(least, fewest_with(at, others));
      }
    }
    return found_[{at, held}] = least;
  }

 private:
  std::uint64_t fewest_with(std::size_t at, std::set<std::uint64_t> held) {
    bool fetched = held.insert(uses_[at].page).second && !uses_[at].first_touch;
    return fewest(at + 1, held) + (fetched ? 1 : 0);
  }
  const std::vector<Use>& uses_;
  std::size_t room_;
  std::map<std::pair<std::size_t, std::set<std::uint64_t>>, std::uint64_t> found_;
};

TEST(BeladyTest, NoChoiceFetchesFewer) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Use> uses;
    std::set<std::uint64_t> known;
    Belady belady;
    for (int at = 0; at < 14; ++at) {
      std::uint64_t page = random() % 6;
      bool first_touch = known.insert(page).second || random() % 5 == 0;  // or given back, and used again
      uses.push_back({page, first_touch});
      belady.add(page, first_touch);
    }
    for (std::size_t room : {1u, 2u, 3u, 5u}) {
      EXPECT_EQ(belady.pages_in(room), AllChoices(uses, room).fewest()) << "room for " << room;
    }
  }
}

TEST(BeladyTest, MissesAsLibCacheSimDoes) {
  for (unsigned number = 0; number < kLibCacheSimBeladyMisses.size(); ++number) {
    PageTrace trace(number);
    Belady belady;
    for (std::uint64_t at = 0; at < PageTrace::kLength; ++at) belady.add(trace.next(at), false);
    EXPECT_EQ(belady.pages_in(PageTrace(number).capacity()), kLibCacheSimBeladyMisses[number]) << "trace " << number;
  }
}

// Skewed use, with pages given back and touched again, and room that is scarce.
TEST(BeladyTest, IsABoundForEveryPolicyInReplay) {
  std::mt19937_64 random(5);
  std::vector<FaultRecord> faults;
  std::set<std::uint64_t> known;
  Belady belady;
  for (int at = 0; at < 20'000; ++at) {
    std::uint64_t page = 0x7000'0000'0 + std::min(random() % 2000, random() % 2000);
    bool first_touch = known.insert(page).second || random() % 64 == 0;
    bool write = random() % 4 == 0;
    FaultKind kind = first_touch ? FaultKind::first_touch : write ? FaultKind::write : FaultKind::read;
    faults.push_back({.page = page, .kind = kind, .write = write});
    belady.add(page, first_touch);
  }
  for (std::uint64_t room : {1024u, 1500u}) {
    std::uint64_t least = belady.pages_in(room);
    EXPECT_GT(least, 0u);
    for (const hl_policy_ops* policy : policies()) {
      ReplayOptions options;
      options.local_bytes = room << kPageShift;
      options.policy = policy;
      options.read_ahead_pages = 16;
      Replay replay(options);
      for (const FaultRecord& fault : faults) replay.fault(fault);
      EXPECT_GE(replay.result().pages_in, least) << policy->name;
      EXPECT_GE(replay.result().fetches + replay.result().ahead_used, least) << policy->name;
    }
  }
}

}  // namespace
}  // namespace hinterland::trace
