// AIFM's own tests (its public source), by their names, over each kind of device, with what they need of memory
// scaled to the least that a heap may have. Not here: its slab allocator and its containers of local memory, for
// which there is the standard library, and dataframes and their files, which do not exist here.
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/object_list.hpp"
#include "hinterland/object_map.hpp"
#include "hinterland/object_shared.hpp"
#include "hinterland/object_vector.hpp"
#include "object/test_support.hpp"
#include "object/testing/far_place.hpp"

namespace hinterland::object::testing {
namespace {

using hl::far::make;
using hl::far::ptr;
using hl::far::scope;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Where it is as quick as memory there is more to do.
class Aifm : public ::testing::TestWithParam<const char*> {
 protected:
  bool quick() const { return !kSanitized && std::string(GetParam()) == "mem:"; }
  std::size_t scaled(std::size_t count) const { return quick() ? count : count / 2; }
  FarPlace place{GetParam()};
  HeapForTest heap{place.url};
};
#ifdef __SANITIZE_THREAD__  // the models of threads_test.cpp wait for devices that do not answer at once
const auto kDevices = ::testing::Values("mem:");
#else
const auto kDevices = ::testing::Values("mem:", "zmem:", "file:", "tcp:");
#endif
INSTANTIATE_TEST_SUITE_P(Over, Aifm, kDevices, [](const auto& of) {
  const std::string kind = of.param;
  return kind.substr(0, kind.size() - 1);
});

// C = A + B, of three times the memory that there is for them.
TEST_P(Aifm, array_add) {
  const std::size_t words = scaled(std::size_t{2} << 20);
  hl::far::vector<std::uint64_t> a(words), b(words), c(words);
  std::uint64_t next = 0;
  for (std::uint64_t& value : a.walk_mut()) value = next++;
  for (std::uint64_t& value : b.walk_mut()) value = next--;
  auto from_a = a.walk(), from_b = b.walk();
  auto at_a = from_a.begin();
  auto at_b = from_b.begin();
  for (std::uint64_t& value : c.walk_mut()) {
    value = *at_a + *at_b;
    ++at_a, ++at_b;
  }
  for (const std::uint64_t& value : c.walk()) ASSERT_EQ(value, words);
  EXPECT_GT(heap->figures().brought.load(), 1000u);
}

TEST_P(Aifm, array_add_rw_api) {
  const std::size_t words = scaled(std::size_t{1} << 20);
  hl::far::vector<std::uint64_t> a(words, 3), b(words, 4), c(words);
  for (std::size_t i = 0; i < words; ++i) c.set(i, a.get(i) + b[i] + i);
  for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(c[i], 7 + i);
}

// Objects in use stay while others pass by.
TEST_P(Aifm, array_clock_replacement) {
  constexpr std::size_t kHot = 16, kSweeps = 4;
  std::vector<ptr<Known<2048>>> all;
  for (std::uint64_t i = 0; i < 8000; ++i) all.push_back(make_known<2048>(i));
  std::size_t looks = 0, misses = 0;
  for (std::size_t sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t i = kHot; i < all.size(); ++i) {
      ASSERT_EQ(all[i].read().words[0], Known<2048>::word_of(i, 0));
      if (i % 32 != 0) continue;
      for (std::size_t hot = 0; hot < kHot; ++hot, ++looks) {
        misses += is_kind(all[hot].far_word()->load(), kFar);
        ASSERT_TRUE(all[hot].read().holds(hot));
      }
    }
  EXPECT_LT(misses, looks / 50) << "by chance it would be two of three";
}

TEST_P(Aifm, hashtable_clock_replacement) {
  constexpr std::uint64_t kKeys = 120'000, kHot = 64;
  hl::far::unordered_map<std::uint64_t, Known<64>> map;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    Known<64> value;
    value.fill(key);
    map.insert(key, value);
  }
  std::uint64_t looks = 0, misses = 0;
  for (std::uint64_t key = kHot; key < kKeys; ++key) {
    ASSERT_TRUE(map.find(key)->holds(key));
    if (key % 1000 != 0) continue;
    const std::uint64_t before = heap->figures().brought.load();
    for (std::uint64_t hot = 0; hot < kHot; ++hot, ++looks) ASSERT_TRUE(map.find(hot)->holds(hot));
    misses += heap->figures().brought.load() - before;
  }
  EXPECT_LT(misses, looks / 10);
}

TEST_P(Aifm, pointer_noswap) {
  std::vector<ptr<Known<64>>> items;
  for (std::uint64_t i = 0; i < 1000; ++i) items.push_back(make_known<64>(i));
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(items[i].read().holds(i));
  EXPECT_EQ(heap->figures().brought.load(), 0u) << "there is room for all of them";
}

TEST_P(Aifm, pointer_swap) {
  const std::size_t count = scaled(220'000);
  std::vector<ptr<Known<64>>> items;
  for (std::uint64_t i = 0; i < count; ++i) items.push_back(make_known<64>(i));
  for (std::uint64_t i = 0; i < count; ++i) {
    scope held;
    ASSERT_TRUE(items[i].deref(held)->holds(i));
    if (i % 2 == 0) items[i].deref_mut(held)->fill(i + 1);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    scope held;
    ASSERT_TRUE(items[i].deref(held)->holds(i % 2 == 0 ? i + 1 : i));
  }
  EXPECT_GT(heap->figures().brought.load(), count / 10);
}

TEST_P(Aifm, pointer_swap_rw_api) {
  const std::size_t count = scaled(260'000);
  std::vector<ptr<Known<64>>> items;
  for (std::uint64_t i = 0; i < count; ++i) items.push_back(make<Known<64>>());
  Known<64> value;
  for (std::uint64_t i = 0; i < count; ++i) value.fill(i), items[i].write(value);
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(items[i].read().holds(i));
}

// 32 threads that use the same objects.
TEST_P(Aifm, pointer_concurrent) {
  const std::size_t count = scaled(200'000);
  std::vector<ptr<Known<64>>> items;
  for (std::uint64_t i = 0; i < count; ++i) items.push_back(make_known<64>(i));
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 32; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (int i = 0; i < 500; ++i) {
        const std::size_t at = random() % count;
        scope held;
        wrong += !items[at].deref(held)->holds(at);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(Aifm, shared_pointer) {
  const std::size_t count = scaled(240'000);
  std::vector<hl::far::shared_ptr<Known<64>>> one, other;
  for (std::uint64_t i = 0; i < count; ++i) {
    one.push_back(hl::far::shared_ptr<Known<64>>(make_known<64>(i)));
    other.push_back(one.back());
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    scope held;
    one[i].deref_mut(held)->fill(i + 1);
  }
  one.clear();
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(other[i].read().holds(i + 1));
}

// hopscotch: what one thread does, and what several do, with room for all (plain) and not (gc, tcp).
void use_map(std::uint64_t keys, std::uint64_t threads_count) {
  hl::far::unordered_map<std::uint64_t, std::uint64_t> map;
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < threads_count; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t key = thread; key < keys; key += threads_count) wrong += !map.insert(key, key * 7);
      for (std::uint64_t key = thread; key < keys; key += threads_count) wrong += map.find(key) != key * 7;
      for (std::uint64_t key = thread; key < keys; key += 2 * threads_count) wrong += !map.erase(key);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  std::uint64_t left = 0;
  for (std::uint64_t thread = 0; thread < threads_count; ++thread)
    for (std::uint64_t key = thread, number = 0; key < keys; key += threads_count, ++number) left += number % 2;
  EXPECT_EQ(map.size(), left);
}
TEST_P(Aifm, hopscotch_serial) { use_map(20'000, 1); }
TEST_P(Aifm, hopscotch_serial_gc) { use_map(scaled(600'000), 1); }
TEST_P(Aifm, hopscotch_parallel) { use_map(20'000, 8); }
TEST_P(Aifm, hopscotch_parallel_gc) { use_map(scaled(600'000), 8); }

TEST_P(Aifm, list_gc) {
  const std::uint64_t count = scaled(2'000'000);
  hl::far::list<std::uint64_t> list;
  for (std::uint64_t i = 0; i < count; ++i) list.push_back(i);
  std::uint64_t next = 0;
  for (const std::uint64_t& value : list.walk()) ASSERT_EQ(value, next++);
  list.reverse();
  for (const std::uint64_t& value : list.walk()) ASSERT_EQ(value, --next);
  list.reverse();
  auto middle = std::next(list.begin(), 1000);
  hl::far::list<std::uint64_t> behind = list.split(middle);
  EXPECT_EQ(behind.front(), 1000u);
  behind.merge(list);
  EXPECT_EQ(behind.size(), count);
  for (const std::uint64_t& value : behind.walk()) ASSERT_EQ(value, next++);
}

// Each of more than there is room for.
TEST_P(Aifm, queue_gc) {
  const std::uint64_t count = scaled(2'000'000);
  hl::far::queue<std::uint64_t> queue;
  for (std::uint64_t i = 0; i < count; ++i) queue.push(i);
  for (std::uint64_t i = 0; i < count; ++i, queue.pop()) ASSERT_EQ(queue.front(), i);
  EXPECT_TRUE(queue.empty());
}

TEST_P(Aifm, stack_gc) {
  const std::uint64_t count = scaled(2'000'000);
  hl::far::stack<std::uint64_t> stack;
  for (std::uint64_t i = 0; i < count; ++i) stack.push(i);
  for (std::uint64_t i = count; i-- > 0; stack.pop()) ASSERT_EQ(stack.top(), i);
  EXPECT_TRUE(stack.empty());
}

TEST_P(Aifm, dataframe_vector) {
  const std::uint64_t count = scaled(2'000'000);
  hl::far::vector<std::uint64_t> vector;
  vector.reserve(count);
  EXPECT_TRUE(vector.empty());
  for (std::uint64_t i = 0; i < count; ++i) vector.push_back(i);
  for (std::uint64_t i = 0; i < count; i += 97) ASSERT_EQ(vector.at(i), i);
  EXPECT_EQ(std::accumulate(vector.cbegin(), vector.cend(), std::uint64_t{0}), count * (count - 1) / 2);
  for (std::uint64_t i = count; i-- > count / 2; vector.pop_back()) ASSERT_EQ(vector.back(), i);
  EXPECT_EQ(vector.size(), count / 2);
}

// A walk that says so does not push out what another array uses.
TEST(AifmLarge, array_nt) {
  HeapForTest heap("mem:", 32 * kMiB);
  hl::far::vector<std::uint64_t> used(std::size_t{1} << 20), walked(std::size_t{8} << 20);
  auto touch = [&] {
    std::uint64_t sum = 0;
    for (const std::uint64_t& value : used.walk()) sum += value;
    return sum;
  };
  for (int i = 0; i < 4; ++i) touch();
  std::uint64_t brought_by_touch = 0;
  for (std::size_t part = 0; part < 16; ++part) {
    const std::size_t size = walked.size() / 16;
    for (const std::uint64_t& value : walked.walk(part * size, (part + 1) * size, hl::far::use::nontemporal))
      ASSERT_EQ(value, 0u);
    const std::uint64_t before = heap->figures().brought.load();
    touch();
    brought_by_touch += heap->figures().brought.load() - before;
  }
  EXPECT_LT(brought_by_touch, 16u * 4096 / 8) << "of 65536 chunks of the array in use, looked at 16 times";
}

}  // namespace
}  // namespace hinterland::object::testing
