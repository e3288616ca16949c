// Policies of the literature that libCacheSim does not have, or has otherwise, against caches in plain containers
// that were written from the papers: the same hits and misses, use by use.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "policy/cache.hpp"
#include "policy/policies.hpp"
#include "policy/testing/libcachesim_misses.hpp"
#include "policy/testing/page_traces.hpp"

namespace hinterland {
namespace {

using Number = std::uint64_t;
using Queue = std::deque<Number>;  // the oldest page first

bool contains(const Queue& queue, Number page) { return std::ranges::find(queue, page) != queue.end(); }
void move_to_end(Queue& queue, Number page) {
  std::erase(queue, page);
  queue.push_back(page);
}
Number pop(Queue& queue) {
  Number first = queue.front();
  queue.pop_front();
  return first;
}

class CacheModel {
 public:
  virtual ~CacheModel() = default;
  virtual bool use(Number page) = 0;  // whether it was there
};

// Section 3.3 of the paper, case by case.
class LirsCache : public CacheModel {
 public:
  explicit LirsCache(std::size_t room) : room_(room), low_most_(room - std::max<std::size_t>(room / 100, 1)) {}

  bool use(Number page) override {
    bool there = low_.contains(page) || contains(queue_, page);
    bool in_stack = contains(stack_, page);
    if (!there && low_.size() + queue_.size() == room_) evict();
    bool becomes_low = low_.contains(page) || in_stack || (!there && !is_full_ && low_.size() < low_most_);
    move_to_end(stack_, page);
    std::erase(queue_, page);
    if (becomes_low)
      low_.insert(page);
    else
      queue_.push_back(page);
    std::erase(left_, page);
    while (low_.size() > low_most_) demote();
    prune();
    while (stack_.size() > 2 * room_ && !left_.empty()) std::erase(stack_, pop(left_));
    return there;
  }

 private:
  void evict() {
    is_full_ = true;
    if (queue_.empty()) demote();
    Number page = pop(queue_);
    if (contains(stack_, page)) left_.push_back(page);
  }
  void demote() {
    prune();
    Number page = pop(stack_);
    low_.erase(page);
    queue_.push_back(page);
    prune();
  }
  void prune() {
    while (!stack_.empty() && !low_.contains(stack_.front())) std::erase(left_, pop(stack_));
  }

  std::size_t room_, low_most_;
  Queue stack_, queue_, left_;
  std::set<Number> low_;
  bool is_full_ = false;
};

// Section 4 of the paper, with counts that are exact, and all halved at the same time.
class WTinyLfuCache : public CacheModel {
 public:
  explicit WTinyLfuCache(std::size_t room) : room_(room), window_most_(std::max<std::size_t>(room / 100, 1)) {}

  bool use(Number page) override {
    bool there = contains(window_, page) || contains(probation_, page) || contains(protected_, page);
    if (!there && window_.size() + probation_.size() + protected_.size() == room_) evict();
    count(page);
    if (contains(probation_, page)) {
      std::erase(probation_, page);
      protected_.push_back(page);
      if (protected_.size() > (room_ - window_most_) * 4 / 5) probation_.push_back(pop(protected_));
    } else if (contains(protected_, page)) {
      move_to_end(protected_, page);
    } else {
      move_to_end(window_, page);
      if (window_.size() > window_most_) probation_.push_back(pop(window_));
    }
    return there;
  }

 private:
  void evict() {
    Queue& main = !probation_.empty() ? probation_ : protected_;
    if (!main.empty() && counts_[window_.front()] > counts_[main.front()]) {
      pop(main);
      probation_.push_back(pop(window_));
    } else {
      pop(window_);
    }
  }
  void count(Number page) {
    if (counts_[page] < 15) ++counts_[page];
    if (++uses_ < 10 * room_) return;
    uses_ /= 2;
    for (auto& [each, counted] : counts_) counted /= 2;
  }

  std::size_t room_, window_most_, uses_ = 0;
  Queue window_, probation_, protected_;
  std::map<Number, unsigned> counts_;
};

// What mglru.cpp says in its first lines.
class MglruCache : public CacheModel {
 public:
  explicit MglruCache(std::size_t room) : room_(room) {}

  bool use(Number page) override {
    if (held_.contains(page)) {
      used_.insert(page);
      return true;
    }
    if (held_.size() == room_) evict();
    auto left = left_.find(page);
    bool soon = left != left_.end() && oldest_ - left->second < 2;
    if (soon) ++tiers_[tier_of_[page]].came_back;
    tier_of_[page] = soon ? std::min(tier_of_[page] + 1, 3) : 0;
    generations_[oldest_ + 2].push_back(page);
    held_.insert(page);
    return false;
  }

 private:
  struct Tier {
    unsigned seen = 0, came_back = 0;
  };
  bool is_spared(int tier) {
    for (int each = 1; each <= tier; ++each) {
      const Tier &low = tiers_[0], &high = tiers_[each];
      if (high.seen >= 64 && high.came_back * (low.seen + 64) > (low.came_back + 1) * high.seen) return true;
    }
    return false;
  }
  void evict() {
    // Which tiers are spared is decided once for a victim, and again for each generation.
    std::array<bool, 4> spared{};
    auto decide = [&] {
      for (int tier = 0; tier < 4; ++tier) spared[static_cast<std::size_t>(tier)] = is_spared(tier);
    };
    decide();
    for (;;) {
      while (generations_[oldest_].empty()) {
        ++oldest_;
        for (auto& [number, tier] : tiers_) tier = {tier.seen / 2, tier.came_back / 2};
        decide();
      }
      Number page = pop(generations_[oldest_]);
      if (used_.erase(page) != 0) {
        generations_[oldest_ + 2].push_back(page);
        continue;
      }
      int& tier = tier_of_[page];
      ++tiers_[tier].seen;
      if (!spared[static_cast<std::size_t>(tier)]) {
        left_[page] = oldest_;
        held_.erase(page);
        return;
      }
      --tier;
      generations_[oldest_ + 1].push_back(page);
    }
  }

  std::size_t room_;
  std::uint64_t oldest_ = 0;
  std::map<std::uint64_t, Queue> generations_;
  std::set<Number> held_, used_;
  std::map<Number, int> tier_of_;
  std::map<Number, std::uint64_t> left_;
  std::map<int, Tier> tiers_;
};

struct Case {
  const hl_policy_ops* policy;
  std::unique_ptr<CacheModel> (*model)(std::size_t room);
};
template <typename Model>
std::unique_ptr<CacheModel> make(std::size_t room) {
  return std::make_unique<Model>(room);
}

class LiteratureTest : public ::testing::TestWithParam<Case> {
 protected:
  void compare(unsigned number, std::uint64_t room, std::uint64_t length) {
    PageTrace trace(number);
    PolicyCache cache(GetParam().policy, "", room, 64 * 1024);
    ASSERT_TRUE(cache.ready());
    std::unique_ptr<CacheModel> model = GetParam().model(room);
    for (std::uint64_t at = 0; at < length; ++at) {
      Number page = trace.next(at);
      ASSERT_EQ(cache.use(page), model->use(page)) << "use " << at << " of trace " << number;
    }
  }
};

// Less room than the traces ask for: the models search their queues for each page.
TEST_P(LiteratureTest, HitsWhatTheModelHits) {
  for (unsigned trace = 0; trace < 20; ++trace) compare(trace, PageTrace(trace).capacity() / 2, 4000);
}
TEST_P(LiteratureTest, HitsWhatTheModelHitsInVeryLittleRoom) {
  for (std::uint64_t room : {1, 2, 3, 10})
    for (unsigned trace = 0; trace < 5; ++trace) compare(trace, room, 2000);
}

INSTANTIATE_TEST_SUITE_P(All, LiteratureTest,
                         ::testing::Values(Case{&kLirsPolicy, make<LirsCache>},
                                           Case{&kWTinyLfuPolicy, make<WTinyLfuCache>},
                                           Case{&kMglruPolicy, make<MglruCache>}),
                         [](const auto& each) {
                           std::string name = each.param.policy->name;
                           std::erase(name, '-');
                           return name;
                         });

// libCacheSim's LIRS lets a page leave at a hit on one that S no longer has, which the paper does not: there it
// misses a little more often.
TEST(LirsTest, MissesNearlyAsLibCacheSimDoes) {
  for (unsigned number = 0; number < kLibCacheSimLirsMisses.size(); ++number) {
    PageTrace trace(number);
    PolicyCache cache(&kLirsPolicy, "", trace.capacity(), 64 * 1024);
    double misses = 0, theirs = kLibCacheSimLirsMisses[number];
    for (std::uint64_t at = 0; at < PageTrace::kLength; ++at) misses += cache.use(trace.next(at)) ? 0 : 1;
    EXPECT_NEAR(misses, theirs, theirs * 0.025) << "trace " << number;
  }
}

}  // namespace
}  // namespace hinterland
