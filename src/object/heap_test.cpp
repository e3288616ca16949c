// Far objects one by one: they leave, come back with their bytes, move with their pointers, and end.
#include <algorithm>
#include <array>
#include <csignal>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/stats.hpp"
#include "object/shared_budget.hpp"
#include "object/test_support.hpp"
#include "object/testing/many_objects.hpp"

namespace hinterland::object::testing {
namespace {

using hl::far::make;
using hl::far::ptr;
using hl::far::scope;
constexpr std::size_t kManyItems = as_many_as(400'000);  // four times the least memory

TEST(HeapLocal, WithoutAHeapObjectsAreOrdinaryMemory) {
  ptr<int> number = make<int>(5);
  EXPECT_EQ(number.read(), 5);
  number.write(6);
  ptr<int> moved = std::move(number);
  EXPECT_FALSE(number);
  EXPECT_EQ(moved.read(), 6);
  // And stay so when a heap begins.
  HeapForTest heap;
  ptr<int> later = make<int>(7);
  EXPECT_EQ(moved.read(), 6);
  moved = std::move(later);
  EXPECT_EQ(moved.read(), 7);
  moved.reset();
}

TEST(Heap, ObjectsBecomeFarAndComeBack) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(kManyItems);
  EXPECT_TRUE(wait_until_left(kManyItems / 2));
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_GT(heap->figures().brought.load(), kManyItems / 2);
  EXPECT_LE(heap->memory().used(), heap->memory().limit() + 4 * kRegionBytes);
}

// As a holder of a budget that pages share (paging/page/ledger.hpp).
TEST(Heap, ALimitThatFallsIsKeptToAndOneThatRisesIsUsed) {
  constexpr std::uint64_t kMuch = 4 * HeapOptions::kLocalBytesMin;
  HeapForTest heap("mem:", kMuch);
  SharedBudget shared(*current_heap());
  std::vector<ptr<Item>> items = many(kManyItems / 2);
  EXPECT_GT(shared.used_bytes(), HeapOptions::kLocalBytesMin);
  EXPECT_EQ(heap->figures().left.load(), 0u);
  EXPECT_EQ(shared.waited_ns(), 0u);
  shared.set_limit(0);  // it keeps the least
  EXPECT_EQ(shared.limit_bytes(), HeapOptions::kLocalBytesMin);
  while (shared.used_bytes() > shared.limit_bytes()) sched_yield();  // or the test's time is over
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_GT(shared.waited_ns(), 0u);
  shared.set_limit(kMuch);
  EXPECT_EQ(count_wrong(items), 0u);  // all come back
  const std::uint64_t brought = heap->figures().brought.load();
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_EQ(heap->figures().brought.load(), brought);
}

TEST(Heap, TheStatisticsPageSaysSo) {
  const auto counted = [](Counter counter) { return stat_page()->counters[counter]; };
  const auto gauge = [](Gauge which) { return stat_page()->gauges[static_cast<std::size_t>(which)].load(); };
  const std::uint64_t misses = counted(Counter::object_misses), evacuations = counted(Counter::object_evacuations);
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(kManyItems);
  ASSERT_TRUE(wait_until_left(kManyItems / 2));
  std::vector<ptr<Known<10'000>>> large;
  for (std::uint64_t i = 0; i < 2000; ++i) large.push_back(make_known<10'000>(i));
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_EQ(counted(Counter::object_misses) - misses, heap->figures().brought.load());
  heap->show_figures();
  EXPECT_GE(gauge(Gauge::object_local_bytes), heap->memory().limit() / 2);
  EXPECT_GE(gauge(Gauge::object_live_bytes), kManyItems / 2 * kItemBytes + 1000 * 10'000);
  EXPECT_GE(gauge(Gauge::object_far_bytes), gauge(Gauge::object_live_bytes));
  EXPECT_LT(gauge(Gauge::object_far_bytes), 2 * gauge(Gauge::object_live_bytes));
  large.clear();
  items.clear();
  EXPECT_GE(counted(Counter::object_evacuations) - evacuations, kManyItems / 2);
}

TEST(Heap, WhatWasOnlyReadLeavesWithoutBeingWritten) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(kManyItems);
  EXPECT_EQ(count_wrong(items), 0u);
  const std::uint64_t pages = heap->far().pages_held();
  while (heap->figures().left_clean.load() <= kManyItems / 4) ASSERT_EQ(count_wrong(items), 0u);
  EXPECT_LT(heap->far().pages_held(), pages + pages / 8);
}

TEST(Heap, WritesAreKept) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(kManyItems);
  for (std::size_t i = 0; i < items.size(); ++i) {
    scope held;
    items[i].deref_mut(held)->fill(i + 77);
  }
  EXPECT_EQ(count_wrong(items, 77), 0u);
}

TEST(Heap, PointersMove) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(kManyItems);
  std::vector<ptr<Item>> others;
  for (std::size_t i = 0; i < items.size(); ++i) {
    others.push_back(std::move(items[i]));  // and all of them again, each time that this one grows
    EXPECT_FALSE(items[i]);
  }
  EXPECT_EQ(count_wrong(others), 0u);
}

TEST(Heap, TheEndOfObjectsGivesEverythingBack) {
  HeapForTest heap;
  {
    std::vector<ptr<Item>> items = many(kManyItems);
    EXPECT_GT(heap->far().pages_held(), 1000u);
    count_wrong(items);
  }
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u);
  EXPECT_LE(heap->far().pages_held(), 64u) << "pages that a writer has open";
}

template <std::size_t kBytes>
void come_back(const std::string& url) {
  SCOPED_TRACE(url + ", " + std::to_string(kBytes) + " bytes");
  HeapForTest heap(url);
  std::vector<ptr<Known<kBytes>>> items;
  const std::size_t count = 14 * kMiB / (kBytes + sizeof(Header));
  for (std::size_t i = 0; i < count; ++i) items.push_back(make_known<kBytes>(i));
  // A program that uses objects faster than they can be written keeps them, beyond the limit, until it rests.
  EXPECT_TRUE(wait_until_left(count / 4 + 1));
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < count; ++i) {
      scope held;
      ASSERT_TRUE(items[i].deref(held)->holds(i)) << i;
      if (i % 3 == 0) {
        ASSERT_TRUE(items[i].deref_mut(held)->holds(i));
      }
    }
  items.clear();
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u);
  EXPECT_EQ(heap->far().large_pages(), 0u);
}

TEST(Heap, OfEverySize) {
#ifdef __SANITIZE_THREAD__  // ten times as slow: threads_test.cpp has the other devices, and small ones
  const std::vector<const char*> urls{"zmem:"};
#else
  come_back<8>("mem:");
  const std::vector<const char*> urls{"mem:", "zmem:", "sim:latency=5us,inner=mem:"};
#endif
  for (const char* url : urls) {
    come_back<200>(url);
    come_back<2048>(url);
    come_back<2056>(url);
    come_back<10000>(url);
    come_back<kRegionObjectMax - 8>(url);
    come_back<200'000>(url);
    come_back<3'000'000>(url);
  }
}

struct alignas(64) Aligned {
  std::uint64_t value;
};
struct alignas(4096) PageAligned {
  std::uint64_t value;
};

TEST(Heap, AlignmentIsKept) {
  HeapForTest heap;
  std::vector<ptr<Aligned>> items;
  std::vector<ptr<PageAligned>> pages;
  for (std::uint64_t i = 0; i < 200'000; ++i) items.push_back(make<Aligned>(i));
  for (std::uint64_t i = 0; i < 4000; ++i) pages.push_back(make<PageAligned>(i));
  auto check = [](auto& all) {
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      scope held;
      auto* object = all[i].deref(held);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(object) % alignof(decltype(*object)), 0u);
      ASSERT_EQ(object->value, i);
    }
  };
  for (int pass = 0; pass < 2; ++pass) check(items), check(pages);
  EXPECT_GT(heap->figures().brought.load(), 10'000u);
}

TEST(Heap, PrefetchBringsManyTogether) {
  HeapForTest heap("sim:latency=50us,inner=mem:");
  std::vector<ptr<Item>> items = many(kManyItems);
  const std::uint64_t before = heap->figures().brought.load();
  hl::far::prefetch(items.data(), 2000);
  EXPECT_GE(heap->figures().brought.load(), before + 1500);
  const std::uint64_t start = now_ns(), brought = heap->figures().brought.load();
  for (std::size_t i = 0; i < 2000; ++i) EXPECT_EQ(items[i].read().words[0], Item::word_of(i, 0));
  EXPECT_LT(heap->figures().brought.load() - brought, 600u) << "after " << now_ns() - start << " ns";
}

TEST(Heap, AScopeHoldsWhatItDereferenced) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(1000);
  scope outer;
  std::vector<const Item*> addresses;
  for (auto& item : items) addresses.push_back(item.deref(outer));
  std::vector<ptr<Item>> others;
  for (std::size_t i = 0; i < kManyItems; ++i) others.push_back(make_item(i));  // more than there is room for
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_TRUE(addresses[i]->holds(i));
    ASSERT_EQ(items[i].deref(outer), addresses[i]);
  }
  EXPECT_GT(heap->figures().beyond_bytes.load(), 0u) << "one scope that holds all goes beyond the limit";
}

TEST(Heap, AfterTooLongAScopeTheLimitHoldsAgain) {
  HeapForTest heap;
  std::vector<ptr<Item>> items;
  {
    scope outer;
    items = many(kManyItems);
  }
  EXPECT_EQ(count_wrong(items), 0u);
  for (const std::uint64_t end = now_ns() + 60'000'000'000; heap->memory().used() > heap->memory().limit();) {
    ASSERT_LT(now_ns(), end);
    EXPECT_EQ(count_wrong(items), 0u);
  }
}

struct Node {
  std::uint64_t key = 0;
  ptr<Item> value;
  ptr<Node> next;
};

}  // namespace
}  // namespace hinterland::object::testing

template <>
struct hl::far::holds<hinterland::object::testing::Node>
    : hl::far::pointers<&hinterland::object::testing::Node::value, &hinterland::object::testing::Node::next> {};

namespace hinterland::object::testing {
namespace {

TEST(Heap, ObjectsWithPointersInThem) {
  HeapForTest heap;
  constexpr std::uint64_t kLists = kItemBytes == 64 ? 500 : 100, kNodes = 200;
  std::vector<ptr<Node>> lists(kLists);
  for (std::uint64_t node = 0; node < kNodes; ++node)
    for (std::uint64_t list = 0; list < kLists; ++list) {
      ptr<Node> first = make<Node>();
      scope held;
      Node* made = first.deref_mut(held);
      made->key = node;
      made->value = make_item(list * kNodes + node);
      made->next = std::move(lists[list]);
      lists[list] = std::move(first);
    }
  // They do not fit: whatever the evacuator's turn, each pass brings a part of them, which leaves again at rest.
  for (int pass = 0; pass < 2 || heap->figures().left.load() <= kLists * kNodes; ++pass) {
    while (heap->memory().used() > heap->memory().limit()) sched_yield();  // or the test's time is over
    for (std::uint64_t list = 0; list < kLists; ++list) {
      const ptr<Node>* at = &lists[list];
      scope held;
      for (std::uint64_t node = kNodes; node-- > 0;) {
        ASSERT_TRUE(*at);
        const Node* there = at->deref(held);
        ASSERT_EQ(there->key, node);
        ASSERT_TRUE(there->value.deref(held)->holds(list * kNodes + node));
        at = &there->next;
      }
      ASSERT_FALSE(*at);
    }
  }
  // Lists leave from their ends. Where each node waited for a round of its own, moved on meanwhile, it was 6 times.
  EXPECT_LT(heap->figures().moved_on.load(), 3 * heap->figures().left.load());
  // A list would end by recursion, as with std::unique_ptr: one by one.
  for (auto& list : lists)
    while (list) {
      scope held;
      list = std::move(list.deref_mut(held)->next);
    }
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u);
}

// Lists whose nodes lie anywhere: hardly any node has its next in its own region, and nothing leaves from a region
// alone.
TEST(Heap, ListsThatLieAnywhereLeave) {
  HeapForTest heap;
  constexpr std::uint64_t kLists = kItemBytes == 64 ? 500 : 100, kNodes = 300;
  const std::uint64_t limit = heap->memory().limit();
  heap->set_limit(64 * kMiB);  // all of it fits at first
  std::vector<ptr<Node>> nodes(kLists * kNodes);
  for (std::uint64_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = make<Node>();
    scope held;
    Node* made = nodes[i].deref_mut(held);
    made->key = i;
    made->value = make_item(i);
  }
  std::ranges::shuffle(nodes, std::mt19937_64(far::testing::test_seed()));
  std::vector<std::uint64_t> order;
  for (const auto& node : nodes) {
    scope held;
    order.push_back(node.deref(held)->key);
  }
  for (std::uint64_t i = 0; i < nodes.size(); ++i) {
    if (i % kNodes == 0) continue;
    scope held;
    nodes[i].deref_mut(held)->next = std::move(nodes[i - 1]);
  }
  heap->set_limit(limit);
  while (heap->memory().used() > limit) sched_yield();  // or the test's time is over
  for (std::uint64_t i = 0; i < nodes.size(); ++i) {
    if (i % kNodes == kNodes - 1) {
      scope held;
      std::uint64_t at = i;
      for (const ptr<Node>* node = &nodes[i]; *node; node = &node->deref(held)->next) {
        ASSERT_EQ(node->deref(held)->key, order[at]);
        ASSERT_TRUE(node->deref(held)->value.deref(held)->holds(order[at]));
        --at;
      }
      ASSERT_EQ(at + kNodes, i);
    }
  }
  for (auto& list : nodes)
    while (list) {
      scope held;
      list = std::move(list.deref_mut(held)->next);
    }
}

// The node that is left is the second: the first ends when its pointer has the second, as with std::unique_ptr.
TEST(Heap, APointerTakesOneOutOfItsOwnObject) {
  HeapForTest heap;
  ptr<Node> list;
  for (std::uint64_t key = 0; key < 10; ++key) {
    ptr<Node> front = make<Node>();
    scope held;
    Node* made = front.deref_mut(held);
    made->key = key;
    made->next = std::move(list);
    list = std::move(front);
  }
  for (std::uint64_t left = 10; left > 0; --left) {
    ASSERT_TRUE(list);
    scope held;
    ASSERT_EQ(list.deref(held)->key, left - 1);
    list = std::move(list.deref_mut(held)->next);
  }
  EXPECT_FALSE(list);
}

struct Throws {
  Throws() { throw std::runtime_error("not made"); }
  std::uint64_t word = 0;
};

TEST(Heap, AnObjectWhoseConstructorThrowsIsNone) {
  HeapForTest heap;
  EXPECT_THROW(make<Throws>(), std::runtime_error);
  std::vector<ptr<Item>> items = many(1000);
  EXPECT_EQ(count_wrong(items), 0u);
}

TEST(HeapFailures, ObjectsThatTheDeviceDoesNotTakeStay) {
  HeapForTest heap("sim:fail_writes=1,inner=mem:");
  std::vector<ptr<Item>> items = many(kManyItems);
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_EQ(heap->figures().left.load(), 0u);
  EXPECT_GT(heap->memory().used(), heap->memory().limit());
}

TEST(HeapFailures, SomeWritesFail) {
  HeapForTest heap("sim:fail_writes=0.2,seed=5,inner=mem:");
  std::vector<ptr<Item>> items = many(kManyItems);
  EXPECT_EQ(count_wrong(items), 0u);
  EXPECT_GT(heap->figures().errors.load(), 0u);
  EXPECT_GT(heap->figures().brought.load(), 0u);
}

TEST(HeapFailures, ADeviceThatIsFull) {
  HeapForTest heap("mem:?size=16M");
  std::vector<ptr<Item>> items = many(kManyItems);
  EXPECT_EQ(count_wrong(items), 0u);
}

TEST(HeapFailures, WhatCannotBeReadIsNeverOtherBytes) {
  HeapForTest heap("sim:fail_reads=0.05,corrupt=0.05,seed=3,inner=mem:");
  hl::far::throw_when_lost(true);
  std::vector<ptr<Item>> items = many(kManyItems);
  std::size_t lost = 0, wrong = 0;
  for (std::size_t i = 0; i < items.size(); ++i) try {
      scope held;
      wrong += !items[i].deref(held)->holds(i);
    } catch (const hl::far::object_lost& error) {
      EXPECT_TRUE(error.code().value() == EIO || error.code().value() == EBADMSG);
      ++lost;
    }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(lost, 100u);
  hl::far::throw_when_lost(false);
}

TEST(HeapFailures, ADeviceThatIsLost) {
  HeapForTest heap("sim:lose_after=2000,inner=mem:");
  hl::far::throw_when_lost(true);
  std::vector<ptr<Item>> items = many(kManyItems);
  std::size_t lost = 0, wrong = 0;
  for (std::size_t i = 0; i < items.size() && lost < 1000; ++i) try {  // an exception takes a sanitizer 0.1 ms
      wrong += !items[i].read().holds(i);
    } catch (const hl::far::object_lost&) {
      ++lost;
    }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(lost, 0u);
  hl::far::throw_when_lost(false);
}

TEST(HeapDeathTest, ALostObjectRaisesSigbus) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto lose = [] {
    HeapForTest heap("sim:fail_reads=1,inner=mem:");
    std::vector<ptr<Item>> items = many(kManyItems);
    count_wrong(items);
  };
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);  // of a sanitizer, which has a handler of its own
        lose();
      },
      ::testing::KilledBySignal(SIGBUS), "is lost: sim:.*Input/output error");
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_IGN);
        lose();
      },
      ::testing::KilledBySignal(SIGBUS), "is lost");
}

TEST(Heap, WrongSettingsAreRefused) {
  EXPECT_THROW(hl::far::start({.local_bytes = 1000, .device_url = "mem:"}), std::system_error);
  try {
    hl::far::start({.local_bytes = 64 * kMiB, .device_url = "memory:"});
    FAIL() << "started";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("'memory'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(hl::far::start({.local_bytes = 64 * kMiB, .device_url = "mem:", .evacuators = 99}), std::system_error);
}

TEST(Heap, StartsAsAsked) {
  ASSERT_TRUE(hl::far::start({.local_bytes = 16 * kMiB, .device_url = "zmem:"}));
  EXPECT_THROW(hl::far::start({.local_bytes = 16 * kMiB}), std::system_error);
  {
    std::vector<ptr<Item>> items = many(kManyItems);
    EXPECT_EQ(count_wrong(items), 0u);
    EXPECT_GT(current_heap()->figures().left.load(), 0u);
  }
  end_heap();
}

}  // namespace
}  // namespace hinterland::object::testing
