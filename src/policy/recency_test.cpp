// What policies make of hints: a program with hints over little local memory, as far as a policy sees it, with the
// real map that hints look at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <random>
#include <vector>

#include "paging/page/policy_host.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 4096, kLocal = 512, kBatch = 16;

// Counts accesses that find their page far, and hints on pages that are there which had to ask.
class Program {
 public:
  explicit Program(const hl_policy_ops& policy, bool hints = true) {
    if (!pages_.create(kPages) || !map_.create(kPages) || !host_.create(&policy, pages_, {.hints = &map_}))
      std::abort();
    for (std::uint32_t page = 0; page < kPages; ++page) pages_.note_used({page});
    if (hints) map_.activate();
  }

  bool access(std::uint32_t page, std::uint8_t priority = 0) {
    if (resident_[page]) {
      if (!map_.active() || (map_.of({page}) & HintMap::kThere) != 0) return true;
      map_.note({page}, kThere);
      ++calls_;
      return true;
    }
    ++misses_;
    if (local_ == kLocal) reclaim();
    host_.arrived({page}, 1, map_.active() ? HL_ARRIVAL_HINT : HL_ARRIVAL_FAULT, priority);
    map_.note({page}, kThere);
    resident_[page] = true;
    ++local_;
    return false;
  }
  std::uint64_t misses() const { return misses_; }
  std::uint64_t calls() const { return calls_; }
  bool is_resident(std::uint32_t page) const { return resident_[page]; }

 private:
  void reclaim() {
    std::vector<hl_page> victims(kBatch);
    victims.resize(host_.choose_victims(victims));
    ASSERT_EQ(victims.size(), kBatch);
    for (hl_page page : victims) {
      ASSERT_TRUE(resident_[page]) << page;
      resident_[page] = false;
      map_.note({page}, PageWord::untouched());
    }
    local_ -= kBatch;
  }

  static inline const PageWord kThere = PageWord{}.resident_dirty();
  PageTable pages_;
  HintMap map_;
  PolicyHost host_;
  std::vector<bool> resident_ = std::vector<bool>(kPages);
  std::uint32_t local_ = 0;
  std::uint64_t misses_ = 0, calls_ = 0;
};

// The yardstick: what nothing but a look at every access would give.
class TrueLru {
 public:
  bool access(std::uint32_t page) {
    if (resident_[page]) {
      order_.splice(order_.begin(), order_, where_[page]);
      return true;
    }
    ++misses_;
    if (order_.size() == kLocal)
      for (std::uint32_t i = 0; i < kBatch; ++i) {
        resident_[order_.back()] = false;
        order_.pop_back();
      }
    where_[page] = order_.insert(order_.begin(), page);
    resident_[page] = true;
    return false;
  }
  std::uint64_t misses() const { return misses_; }

 private:
  std::list<std::uint32_t> order_;
  std::vector<std::list<std::uint32_t>::iterator> where_ = std::vector<std::list<std::uint32_t>::iterator>(kPages);
  std::vector<bool> resident_ = std::vector<bool>(kPages);
  std::uint64_t misses_ = 0;
};

// Pages by Zipf's law, the popular ones scattered.
class Zipf {
 public:
  Zipf(std::uint32_t pages, double exponent, std::uint64_t seed) : random_(seed), order_(pages) {
    double sum = 0;
    for (std::uint32_t i = 0; i < pages; ++i) {
      order_[i] = i;
      sums_.push_back(sum += std::pow(i + 1, -exponent));
    }
    std::shuffle(order_.begin(), order_.end(), random_);
  }
  std::uint32_t next() {
    double at = std::uniform_real_distribution<double>(0, sums_.back())(random_);
    return order_[static_cast<std::size_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin())];
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::uint32_t> order_;
  std::vector<double> sums_;
};

std::uint64_t misses_of(const hl_policy_ops& policy, auto&& accesses, bool hints = true) {
  Program program(policy, hints);
  accesses(program);
  return program.misses();
}

constexpr int kAccesses = 200'000;

void by_popularity(auto& memory) {
  Zipf zipf(kPages, 1.0, 1);
  for (int i = 0; i < kAccesses; ++i) memory.access(zipf.next());
}

void by_popularity_beside_scans(auto& memory) {
  Zipf zipf(kPages / 2, 1.0, 1);
  for (int i = 0; i < kAccesses; ++i) {
    memory.access(zipf.next());
    if (i % 4 == 0) memory.access(kPages / 2 + static_cast<std::uint32_t>(i) / 4 % (kPages / 2));
  }
}

// Nine accesses in ten go to pages that fit; which these are changes now and then.
void where_it_is_hot_for_a_while(auto& memory) {
  std::mt19937_64 random(3);
  for (int i = 0; i < kAccesses; ++i) {
    auto base = static_cast<std::uint32_t>(i / 20'000 * 300);
    auto offset = static_cast<std::uint32_t>(random());
    memory.access(random() % 10 < 9 ? (base + offset % 400) % kPages : offset % kPages);
  }
}

// What hints say is worth a fifth of the misses of pages by popularity, and half where the hot ones change.
TEST(RecencyTest, SecondChanceAndLearnerHearHints) {
  for (const hl_policy_ops* policy : {&kSecondChancePolicy, &kLearnerPolicy}) {
    EXPECT_LT(misses_of(*policy, [](auto& m) { by_popularity(m); }),
              misses_of(kFifoPolicy, [](auto& m) { by_popularity(m); }) * 85 / 100)
        << policy->name;
    EXPECT_LT(misses_of(*policy, [](auto& m) { by_popularity_beside_scans(m); }),
              misses_of(kFifoPolicy, [](auto& m) { by_popularity_beside_scans(m); }) * 85 / 100)
        << policy->name;
    EXPECT_LT(misses_of(*policy, [](auto& m) { where_it_is_hot_for_a_while(m); }),
              misses_of(kFifoPolicy, [](auto& m) { where_it_is_hot_for_a_while(m); }) * 60 / 100)
        << policy->name;
  }
}

TEST(RecencyTest, LruIsAsGoodAsIfItSawEveryAccess) {
  auto expect_alike = [](auto&& accesses) {
    TrueLru yardstick;
    accesses(yardstick);
    std::uint64_t misses = misses_of(kLruPolicy, accesses);
    EXPECT_LT(misses, yardstick.misses() * 103 / 100);
    EXPECT_GT(misses, yardstick.misses() * 90 / 100);
  };
  expect_alike([](auto& memory) { by_popularity(memory); });
  expect_alike([](auto& memory) { by_popularity_beside_scans(memory); });
  expect_alike([](auto& memory) { where_it_is_hot_for_a_while(memory); });
}

TEST(RecencyTest, WithoutHintsTwoAreFirstInFirstOut) {
  auto accesses = [](auto& memory) { by_popularity(memory); };
  for (const hl_policy_ops* policy : {&kFifoPolicy, &kLruPolicy})
    EXPECT_EQ(misses_of(*policy, accesses, false), misses_of(kFifoPolicy, accesses)) << policy->name;
}

// How soon pages come back says nearly as much as hints do.
TEST(RecencyTest, WithoutHintsPagesThatComeBackSoonStay) {
  for (const hl_policy_ops* policy : {&kSecondChancePolicy, &kLearnerPolicy, &kPriorityPolicy}) {
    auto misses = [policy](auto&& accesses) { return misses_of(*policy, accesses, false); };
    auto of_fifo = [](auto&& accesses) { return misses_of(kFifoPolicy, accesses); };
    auto popular = [](auto& memory) { by_popularity(memory); };
    auto beside_scans = [](auto& memory) { by_popularity_beside_scans(memory); };
    auto hot = [](auto& memory) { where_it_is_hot_for_a_while(memory); };
    EXPECT_LT(misses(popular), of_fifo(popular) * 85 / 100) << policy->name;
    EXPECT_LT(misses(beside_scans), of_fifo(beside_scans) * 85 / 100) << policy->name;
    EXPECT_LT(misses(hot), of_fifo(hot) * 70 / 100) << policy->name;
  }
}

// A working set that nearly fills the budget, beside a stream that is never used again: the set stays.
TEST(RecencyTest, WithoutHintsAWorkingSetThatNearlyFillsTheBudgetStays) {
  constexpr std::uint32_t kSet = kLocal * 85 / 100;
  for (const hl_policy_ops* policy : {&kSecondChancePolicy, &kLearnerPolicy, &kPriorityPolicy}) {
    Program program(*policy, false);
    std::mt19937_64 random(5);
    std::uint64_t misses_of_set = 0;
    for (int i = 0; i < kAccesses; ++i) {
      misses_of_set += !program.access(static_cast<std::uint32_t>(random() % kSet));
      if (i % 16 == 0) program.access(kSet + static_cast<std::uint32_t>(i) / 16 % (kPages - kSet));
    }
    EXPECT_LT(misses_of_set, kAccesses / 100 * 5) << policy->name;
  }
}

// A question costs the program a call, some 50 ns; a miss costs it microseconds.
TEST(RecencyTest, QuestionsAreFewForEachMiss) {
  for (const hl_policy_ops* policy : policies()) {
    Program program(*policy);
    by_popularity(program);
    EXPECT_LT(program.calls(), program.misses()) << policy->name;
    EXPECT_EQ(program.calls() != 0, policy != &kFifoPolicy) << policy->name;
  }
}

// Where everything is in use at every moment, something must leave all the same, and the work stays bounded.
TEST(RecencyTest, SomethingLeavesWhereEverythingIsInUse) {
  for (const hl_policy_ops* policy : policies()) {
    Program program(*policy);
    for (std::uint32_t round = 0; round < 200; ++round) {
      for (std::uint32_t page = 0; page < kLocal; ++page)
        if (program.is_resident(page)) program.access(page);
      program.access(kLocal + round);
    }
    EXPECT_GE(program.misses(), 200u) << policy->name;
  }
}

// AIFM's web service: a table that is used again, and large objects that are used once (AIFM 8.1.1, Eden 5.3.2).
TEST(PriorityTest, WhatIsUsedOnceDoesNotPushOutTheRest) {
  auto misses_of_table = [](const hl_policy_ops& policy, std::uint8_t priority) {
    Program program(policy);
    Zipf table(kLocal, 0.8, 1);
    std::mt19937_64 random(2);
    std::uint64_t misses = 0;
    for (int i = 0; i < kAccesses / 4; ++i) {
      misses += !program.access(table.next());
      program.access(kLocal + static_cast<std::uint32_t>(random() % (kPages - kLocal)), priority);
    }
    return misses;
  };
  std::uint64_t with = misses_of_table(kPriorityPolicy, 15);
  EXPECT_LT(with, misses_of_table(kPriorityPolicy, 0) / 4);
  EXPECT_LT(with, misses_of_table(kSecondChancePolicy, 15) / 4);
}

}  // namespace
}  // namespace hinterland
