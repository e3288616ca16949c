// Far containers against those of the standard library, by random operations with little local memory.
#include <algorithm>
#include <numeric>
#include <queue>
#include <random>
#include <thread>
#include <unordered_map>

#include "hinterland/object_map.hpp"
#include "hinterland/object_vector.hpp"
#include "object/test_support.hpp"

namespace hinterland::object::testing {
namespace {

TEST(FarVector, HoldsWhatAVectorHolds) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  HeapForTest heap;
  std::mt19937_64 random(seed);
  hl::far::vector<std::uint64_t> far;
  std::vector<std::uint64_t> model;
  for (int step = 0; step < 2'000'000; ++step) {
    const std::uint64_t what = random() % 16, value = random();
    if (what < 12 || model.empty())
      far.push_back(value), model.push_back(value);
    else if (what < 14)
      far[value % model.size()] = step, model[value % model.size()] = static_cast<std::uint64_t>(step);
    else if (what < 15)
      far.pop_back(), model.pop_back();
    else
      ASSERT_EQ(far[value % model.size()], model[value % model.size()]);
  }
  ASSERT_EQ(far.size(), model.size());
  EXPECT_GT(heap->figures().left.load(), 1000u);
  std::size_t at = 0;
  for (const std::uint64_t& value : far.walk()) ASSERT_EQ(value, model[at++]);
  EXPECT_EQ(at, model.size());
  for (std::uint64_t& value : far.walk_mut(100, model.size() - 100, hl::far::use::nontemporal)) value += 3;
  for (std::size_t i = 100; i < model.size() - 100; ++i) model[i] += 3;
  EXPECT_TRUE(std::equal(far.cbegin(), far.cend(), model.begin(), model.end()));
  far.resize(1000), model.resize(1000);
  far.resize(5000, 9), model.resize(5000, 9);
  EXPECT_TRUE(std::equal(far.cbegin(), far.cend(), model.begin(), model.end()));
  EXPECT_THROW(static_cast<void>(far.at(5000)), std::out_of_range);
  hl::far::vector<std::uint64_t> moved = std::move(far);
  EXPECT_TRUE(far.empty());  // as a moved std::vector
  EXPECT_EQ(moved.at(4999), 9u);
}

TEST(FarVector, TheStandardLibrarysAlgorithms) {
  static_assert(std::random_access_iterator<hl::far::vector<int>::const_iterator>);
  HeapForTest heap;
  std::mt19937_64 random(7);
  hl::far::vector<std::uint32_t> far;
  std::vector<std::uint32_t> model;
  for (int i = 0; i < 200'000; ++i)
    model.push_back(static_cast<std::uint32_t>(random())), far.push_back(model.back());
  std::sort(far.begin(), far.end());
  std::sort(model.begin(), model.end());
  EXPECT_TRUE(std::equal(far.cbegin(), far.cend(), model.begin(), model.end()));
  EXPECT_EQ(std::lower_bound(far.cbegin(), far.cend(), model[777]) - far.cbegin(),
            std::lower_bound(model.begin(), model.end(), model[777]) - model.begin());
  EXPECT_EQ(std::accumulate(far.cbegin(), far.cend(), std::uint64_t{0}),
            std::accumulate(model.begin(), model.end(), std::uint64_t{0}));
}

TEST(FarArray, Extents) {
  hl::far::array<int, 10, 20, 30> table;
  table(3, 4, 5) = 7;
  EXPECT_EQ(table(3, 4, 5), 7);
  EXPECT_EQ(std::as_const(table)(3, 4, 6), 0);
  EXPECT_EQ(table.flat()[(3 * 20 + 4) * 30 + 5], 7);
}

TEST(FarQueue, OneThatWasMovedFromIsEmptyAndMayBeUsed) {
  HeapForTest heap;
  hl::far::queue<std::uint64_t> from;
  for (std::uint64_t i = 0; i < 1000; ++i) from.push(i);
  from.pop();
  hl::far::queue<std::uint64_t> to(std::move(from));
  EXPECT_TRUE(from.empty());
  from.push(7);
  EXPECT_EQ(from.front(), 7u);
  from = std::move(to);
  EXPECT_EQ(from.size(), 999u);
  EXPECT_EQ(from.front(), 1u);
  EXPECT_TRUE(to.empty());
}

TEST(FarQueue, AndStack) {
  HeapForTest heap;
  std::mt19937_64 random(5);
  hl::far::queue<std::uint64_t> far;
  hl::far::stack<std::uint64_t> far_stack;
  std::deque<std::uint64_t> model, stack_model;
  for (int step = 0; step < 2'000'000; ++step) {
    if (random() % 8 < 6 || model.empty()) {
      model.push_back(random()), stack_model.push_back(model.back());
      far.push(model.back()), far_stack.push(model.back());
    } else {
      ASSERT_EQ(far.front(), model.front());
      ASSERT_EQ(far_stack.top(), stack_model.back());
      far.pop(), model.pop_front(), far_stack.pop(), stack_model.pop_back();
    }
    ASSERT_EQ(far.size(), model.size());
  }
  while (!model.empty()) {
    ASSERT_EQ(far.front(), model.front());
    ASSERT_EQ(far_stack.top(), stack_model.back());
    far.pop(), model.pop_front(), far_stack.pop(), stack_model.pop_back();
  }
  EXPECT_TRUE(far.empty() && far_stack.empty());
  EXPECT_GT(heap->figures().left.load(), 1000u);
}

struct Record {
  std::uint64_t key = 0, version = 0;
};

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kMapSteps = 450'000, kThreadSteps = 40'000;
#else
constexpr std::uint64_t kMapSteps = 600'000, kThreadSteps = 100'000;
#endif

TEST(FarMap, HoldsWhatAMapHolds) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  HeapForTest heap;
  std::mt19937_64 random(seed);
  hl::far::unordered_map<std::uint64_t, Record> far;
  std::unordered_map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t step = 0; step < kMapSteps; ++step) {
    const std::uint64_t key = random() % 400'000, what = random() % 8;
    if (what < 4) {
      EXPECT_EQ(far.insert_or_assign(key, {key, step}), model.insert_or_assign(key, step).second);
    } else if (what < 5) {
      ASSERT_EQ(far.insert(key, {key, step}), model.insert({key, step}).second);
    } else if (what < 6) {
      ASSERT_EQ(far.erase(key), model.erase(key) == 1);
    } else if (what < 7) {
      auto found = model.find(key);
      ASSERT_EQ(far.visit(key, [&](Record& there) { there.version = step; }), found != model.end());
      if (found != model.end()) found->second = step;
    } else {
      auto there = far.find(key);
      auto found = model.find(key);
      ASSERT_EQ(there.has_value(), found != model.end());
      ASSERT_TRUE(!there || (there->key == key && there->version == found->second));
    }
  }
  ASSERT_EQ(far.size(), model.size());
  std::size_t seen = 0;
  far.for_each([&](std::uint64_t key, const Record& there) { seen += model.at(key) == there.version; });
  EXPECT_EQ(seen, model.size());
  EXPECT_GT(heap->figures().brought.load(), 1000u);
  far.clear();
  EXPECT_TRUE(far.empty());
}

TEST(FarMap, ManyThreads) {
  HeapForTest heap("mem:", HeapOptions::kLocalBytesMin, 2);
  hl::far::unordered_map<std::uint64_t, Record> map;
  constexpr std::uint64_t kKeys = 200'000, kSteps = kThreadSteps;
  for (std::uint64_t key = 0; key < kKeys; ++key) map.insert(key, {key, 0});
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        const std::uint64_t key = random() % kKeys, own = kKeys + step * 4 + thread;
        if (step % 2 == 0) map.visit(key, [](Record& there) { ++there.version; });
        auto found = std::as_const(map).find(key);
        wrong += !found || found->key != key;
        map.insert(own, {own, 0});
        wrong += !map.erase(own) || map.contains(own);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(map.size(), kKeys);
  std::uint64_t sum = 0;
  map.for_each([&](std::uint64_t, const Record& there) { sum += there.version; });
  EXPECT_EQ(sum, 4 * kSteps / 2);
}

}  // namespace
}  // namespace hinterland::object::testing
