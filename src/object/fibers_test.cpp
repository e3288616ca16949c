// Far objects on fibers: a miss parks the fiber, scopes move with it, and several misses are one batch.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/object_map.hpp"
#include "object/arrivals.hpp"
#include "object/test_support.hpp"
#include "object/testing/far_place.hpp"
#include "object/testing/many_objects.hpp"
#include "object/testing/run_fibers.hpp"

namespace hinterland::object::testing {
namespace {

using hl::far::ptr;
using hl::far::scope;
using hl::fibers::fiber;

// Somewhat more than there is room for.
constexpr std::size_t kMany = as_many_as(130'000);

template <typename Item_>
bool is_far(const ptr<Item_>& p) {
  const std::uint64_t value = p.far_word()->load();
  return is_kind(value, kFar) || is_kind(value, kFarLarge);
}

// The places of `count` objects that are far, each on a page of its own as far as may be.
std::vector<std::size_t> far_ones(const std::vector<ptr<Item>>& items, std::size_t count) {
  std::vector<std::size_t> found;
  for (std::size_t step = 97, at = 0; found.size() < count && at < items.size(); at += step)
    if (is_far(items[at])) found.push_back(at);
  EXPECT_EQ(found.size(), count);
  return found;
}

TEST(HeapFibers, AMissParksAndOthersRun) {
  HeapForTest heap("sim:latency=10ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(1000));
  const std::size_t far = far_ones(items, 1).front();
  std::atomic<bool> there{false};
  std::uint64_t turns = 0;
  hl::fibers::run({.workers = 1}, [&] {
    fiber misses([&] {
      scope held;
      EXPECT_TRUE(items[far].deref(held)->holds(far));
      there = true;
    });
    while (!there) ++turns, hl::fibers::this_fiber::yield();
    misses.join();
  });
  EXPECT_GT(turns, 10u) << "the worker's other fiber ran meanwhile";
}

// Each alone would wait for 10 ms.
TEST(HeapFibers, MissesOfManyAreOneBatch) {
  HeapForTest heap("sim:latency=10ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  const std::vector<std::size_t> far = far_ones(items, 32);
  std::atomic<std::size_t> waiting{0}, most{0};
  run_fibers(1, far.size(), [&](std::size_t i) {
    const std::size_t now = ++waiting;
    if (now > most) most = now;
    EXPECT_TRUE(items[far[i]].read().holds(far[i]));
    --waiting;
  });
  EXPECT_EQ(most.load(), far.size()) << "none blocked the worker";
}

TEST(HeapFibers, LooksAheadPark) {
  HeapForTest heap("sim:latency=10ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  const std::uint64_t before = heap->figures().brought.load();
  std::atomic<bool> there{false};
  std::uint64_t turns = 0;
  hl::fibers::run({.workers = 1}, [&] {
    fiber looks([&] {
      hl::far::prefetch(&items[1000], 50);
      there = true;
    });
    while (!there) ++turns, hl::fibers::this_fiber::yield();
    looks.join();
  });
  EXPECT_GT(turns, 2u) << "the worker's other fiber ran meanwhile";
  EXPECT_GT(heap->figures().brought.load(), before);
}

TEST(HeapFibers, WhoAsksNotToParkBlocks) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(1000));
  const std::vector<std::size_t> far = far_ones(items, 4);
  std::atomic<std::size_t> waiting{0}, most{0};
  run_fibers(
      1, far.size(),
      [&](std::size_t i) {
        const std::size_t now = ++waiting;
        if (now > most) most = now;
        EXPECT_TRUE(items[far[i]].read().holds(far[i]));
        --waiting;
      },
      false);
  EXPECT_EQ(most.load(), 1u);
}

// One word: whoever comes while it is on its way waits for the same read.
TEST(HeapFibers, ManyWaitForOneObject) {
  HeapForTest heap("sim:latency=5ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(1000));
  const std::size_t far = far_ones(items, 1).front();
  const std::uint64_t before = heap->figures().brought.load();
  run_fibers(2, 40, [&](std::size_t) { EXPECT_TRUE(items[far].read().holds(far)); });
  EXPECT_EQ(heap->figures().brought.load(), before + 1);
}

// The thread that blocks has begun the read itself, in a fiber: nobody else gathers it.
TEST(HeapFibers, AThreadThatBlocksGathersWhatItsFibersHaveBegun) {
  HeapForTest heap("sim:latency=5ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(1000));
  const std::size_t far = far_ones(items, 1).front();
  hl::fibers::run({.workers = 1}, [&] {
    std::atomic<bool> begun{false};
    fiber misses([&] {
      begun = true;
      EXPECT_TRUE(items[far].read().holds(far));
    });
    while (!begun) hl::fibers::this_fiber::yield();
    {
      const hl::far::detail::undivided step;  // as within a map's lock: here nobody parks
      EXPECT_TRUE(items[far].read().holds(far));
    }
    misses.join();
  });
}

TEST(HeapFibers, AMapMayBeUsed) {
  HeapForTest heap("sim:latency=20us,inner=mem:");
  hl::far::unordered_map<std::uint64_t, Item> map;
  constexpr std::uint64_t kKeys = 120'000 / kSlowdown;
  Item item;
  for (std::uint64_t key = 0; key < kKeys; ++key) item.fill(key), map.insert(key, item);
  run_fibers(3, 24, [&](std::size_t i) {
    std::mt19937_64 random(i);
    for (int step = 0; step < 300 / kSlowdown; ++step) {
      const std::uint64_t key = random() % kKeys;
      const auto found = map.find(key);
      ASSERT_TRUE(found.has_value());
      EXPECT_TRUE(found->holds(key));
      hl::fibers::this_fiber::yield();
    }
  });
}

// What is dereferenced stays where it is while the fiber goes from thread to thread, and evacuators make room.
TEST(HeapFibers, ScopesMoveWithTheFiber) {
  HeapForTest heap("mem:");
  std::vector<ptr<Item>> items = many(kMany);
  std::atomic<bool> done{false};
  std::atomic<std::size_t> wrong{0}, moved{0};
  std::thread presses([&] {
    std::mt19937_64 random(7);
    while (!done) wrong += [&, at = random() % kMany] { return !items[at].read().holds(at); }();
  });
  run_fibers(3, 24, [&](std::size_t i) {
    std::mt19937_64 random(i);
    for (int round = 0; round < 400 / kSlowdown; ++round) {
      scope outer;
      const std::size_t at = random() % kMany, other = random() % kMany;
      const Item* held = items[at].deref(outer);
      const std::thread::id before = std::this_thread::get_id();
      for (int turn = 0; turn < 4; ++turn) {
        {
          scope inner;
          wrong += !items[other].deref(inner)->holds(other);
          hl::fibers::this_fiber::yield();
        }
        wrong += !held->holds(at) || items[at].deref(outer) != held;
        if (turn % 2 == 0) outer.is_open() ? void() : std::abort();
      }
      moved += before != std::this_thread::get_id();
    }
  });
  done = true;
  presses.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(heap->figures().left.load(), 1000u);
  // No scope is left behind in any slot: room can still be made.
  const std::uint64_t left = heap->figures().left.load();
  std::vector<ptr<Item>> more = many(kMany);
  EXPECT_TRUE(wait_until_left(left + 1000));
}

// Its scope is nobody's who runs, and evacuators wait for it all the same.
TEST(HeapFibers, AFiberThatWaitsHoldsWhatItHasDereferenced) {
  HeapForTest heap("mem:");
  std::vector<ptr<Item>> items = many(as_many_as(50'000));
  std::vector<ptr<Item>> more;
  hl::fibers::semaphore pressed(0);
  std::atomic<int> waiting{0};
  std::thread presses([&] {
    while (waiting.load() != 20) usleep(100);
    // Until there is no room left: nothing can leave. Did it, there would be no end.
    while (more.size() < 2 * kMany && heap->local().regions_left() != 0) more.push_back(make_item(1));
    pressed.release(20);
  });
  std::size_t moved = 0;
  run_fibers(1, 20, [&](std::size_t i) {
    scope outer;
    const std::size_t at = i * as_many_as(2000);  // in each of the regions that leave first
    const Item* const held = items[at].deref(outer);
    ++waiting;
    pressed.acquire();
    moved += items[at].deref(outer) != held || !held->holds(at);
  });
  presses.join();
  EXPECT_EQ(moved, 0u);
  EXPECT_LT(more.size(), 2 * kMany);
  EXPECT_TRUE(wait_until_left(1)) << "it leaves when they are done";
}

TEST(HeapFibers, AThreadsOwnScopeIsNoFibers) {
  HeapForTest heap("mem:");
  std::vector<ptr<Item>> items = many(1000);
  scope outer;
  const Item* held = items[5].deref(outer);
  run_fibers(2, 8, [&](std::size_t i) {
    scope inner;
    EXPECT_TRUE(items[i].deref(inner)->holds(i));
    hl::fibers::this_fiber::yield();
  });
  std::vector<ptr<Item>> more = many(kMany);
  EXPECT_EQ(items[5].deref(outer), held) << "it has not been moved";
}

// Random reads, writes, moves and ends on fibers of several threads, with threads beside and two evacuators.
void run_model(const std::string& kind, unsigned workers, std::size_t fibers, int steps) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE(kind + ", HINTERLAND_TEST_SEED=" + std::to_string(seed));
  const FarPlace place(kind);
  HeapForTest heap(place.url, HeapOptions::kLocalBytesMin, 2);
  std::vector<ptr<Item>> shared = many(kMany);
  std::vector<ptr<Known<3000>>> large;
  for (std::uint64_t i = 0; i < 2000; ++i) large.push_back(make_known<3000>(i));
  std::atomic<std::size_t> wrong{0}, lost{0};
  std::atomic<bool> done{false};
  auto guarded = [&](auto&& body) {
    try {
      body();
    } catch (const hl::far::object_lost&) {
      ++lost;  // only of failing devices; tried again, it may be had
    }
  };
  std::thread beside([&] {
    std::mt19937_64 random(seed);
    while (!done) guarded([&, at = random() % kMany] { wrong += !shared[at].read().holds(at); });
  });
  run_fibers(workers, fibers, [&](std::size_t number) {
    std::mt19937_64 random(seed + number + 1);
    std::vector<ptr<Item>> own(60);
    std::vector<std::uint64_t> ids(own.size());
    for (int step = 0; step < steps / kSlowdown; ++step)
      guarded([&] {
        const std::size_t at = random() % own.size(), any = random() % kMany, big = random() % large.size();
        switch (random() % 8) {
          case 0:
            own[at].reset();
            own[at] = make_item(ids[at] = random());
            break;
          case 1:
            if (own[at]) wrong += !own[at].read().holds(ids[at]);
            break;
          case 2: {
            const std::size_t other = random() % own.size();
            std::swap(own[at], own[other]);
            std::swap(ids[at], ids[other]);
            break;
          }
          case 3:
            if (own[at]) {
              scope held;
              Item* item = own[at].deref_mut(held);
              wrong += !item->holds(ids[at]);
              item->fill(ids[at] = random());
            }
            break;
          case 4:
            hl::far::prefetch(&shared[std::min(any, kMany - 16)], 16);
            break;
          case 5: {
            scope held;
            wrong += !large[big].deref(held)->holds(big);
            break;
          }
          default: {
            scope held;
            const Item* first = shared[any].deref(held);
            const Item* second = shared[kMany - 1 - any].deref(held);
            wrong += !first->holds(any) || !second->holds(kMany - 1 - any);
          }
        }
      });
  });
  done = true;
  beside.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(lost.load() != 0, kind.find("fail") != std::string::npos);
  EXPECT_GT(heap->figures().brought.load(), 100u);
  shared.clear(), large.clear();
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u) << "everything has ended";
}

TEST(HeapFibersModel, OverMemory) { run_model("mem:", 3, 30, 8000); }
TEST(HeapFibersModel, OverCompressedMemory) { run_model("zmem:", 2, 30, 4000); }
TEST(HeapFibersModel, OverADeviceThatTakesItsTime) { run_model("sim:latency=20us,inner=mem:", 3, 60, 5000); }
TEST(HeapFibersModel, OneWorker) { run_model("sim:latency=20us,inner=mem:", 1, 60, 3000); }
TEST(HeapFibersModel, OverAFile) { run_model("file:", 3, 40, 2000); }
TEST(HeapFibersModel, OverTcp) { run_model("tcp:", 3, 40, 4000); }
TEST(HeapFibersModel, OverADeviceThatFails) {
  hl::far::throw_when_lost(true);
  run_model("sim:latency=10us,fail_reads=0.02,corrupt=0.01,fail_writes=0.01,seed=9,inner=mem:", 3, 40, 5000);
  hl::far::throw_when_lost(false);
}

// The right one gets it: the others go on.
TEST(HeapFibers, WhatIsLostIsToldToTheFiberThatAsked) {
  hl::far::throw_when_lost(true);
  HeapForTest heap("sim:latency=1ms,fail_reads=0.5,seed=3,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  const std::vector<std::size_t> far = far_ones(items, 64);
  std::atomic<std::size_t> right{0}, lost{0};
  run_fibers(2, far.size(), [&](std::size_t i) {
    try {
      const Item item = items[far[i]].read();
      EXPECT_TRUE(item.holds(far[i]));
      ++right;
    } catch (const hl::far::object_lost& error) {
      EXPECT_EQ(error.code().value(), EIO);
      EXPECT_TRUE(is_far(items[far[i]]));
      ++lost;
    }
  });
  EXPECT_EQ(right.load() + lost.load(), far.size());
  EXPECT_GT(right.load(), 5u);
  EXPECT_GT(lost.load(), 5u);
  hl::far::throw_when_lost(false);
}

// Fibers that wait for a server that dies go on, each with its error.
TEST(HeapFibers, AServerThatDiesLetsNobodyHang) {
  hl::far::throw_when_lost(true);
  FarPlace place("tcp:");
  HeapForTest heap(place.url);
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(10'000)));
  const std::vector<std::size_t> far = far_ones(items, 40);
  std::atomic<std::size_t> right{0}, lost{0};
  run_fibers(2, far.size(), [&](std::size_t i) {
    if (i == 20) place.server.reset();
    try {
      right += items[far[i]].read().holds(far[i]);
    } catch (const hl::far::object_lost&) {
      ++lost;
    }
  });
  EXPECT_EQ(right.load() + lost.load(), far.size());
  EXPECT_GT(lost.load(), 0u);
  hl::far::throw_when_lost(false);
}

TEST(HeapFibersDeathTest, ALostObjectRaisesSigbusInItsFiber) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);  // of a sanitizer, which has a handler of its own
        HeapForTest heap("sim:latency=100us,fail_reads=1,inner=mem:");
        std::vector<ptr<Item>> items = many(kMany);
        wait_until_left(1000);
        const std::size_t far = far_ones(items, 1).front();
        run_fibers(2, 2, [&](std::size_t) { static_cast<void>(items[far].read()); });
      },
      ::testing::KilledBySignal(SIGBUS), "is lost: sim:.*Input/output error");
}

// A fork waits for what fibers have begun, and the child has every object, though no fiber runs in it.
TEST(HeapFibers, ForkWhileObjectsAreOnTheirWay) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a fork beside threads finds the address sanitizer's own allocator locked, which no fork waits for";
#endif
  HeapForTest heap("sim:latency=2ms,inner=mem:");
  std::vector<ptr<Item>> items = many(kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  std::atomic<int> running{0}, threads{2};
  std::atomic<bool> done{false};
  std::atomic<std::size_t> wrong{0};
  // Detached: the thread sanitizer takes it for a mistake that a child's thread has the number of one that is not
  // there, and could have been joined.
  for (int thread = 0; thread < 2; ++thread)
    std::thread([&] {
      run_fibers(1, 8, [&](std::size_t i) {
        std::mt19937_64 random(i);
        ++running;
        while (!done) {
          scope held;
          const std::size_t at = random() % kMany;
          wrong += !items[at].deref(held)->holds(at);
        }
      });
      --threads;
    }).detach();
  while (running.load() < 16) usleep(100);
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      for (std::size_t at = 0; at < kMany; at += 501)
        if (!items[at].read().holds(at)) _exit(1);
      std::vector<ptr<Item>> more = many(kMany / 4);  // evacuators work in the child
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  while (threads.load() != 0) usleep(1000);
  EXPECT_EQ(wrong.load(), 0u);
}

// A process may end while objects are on their way.
TEST(HeapFibersDeathTest, ExitWhileObjectsAreOnTheirWay) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer calls leaked what only the fiber that exits knows of";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        HeapForTest heap("sim:latency=30ms,inner=mem:");
        std::vector<ptr<Item>> items = many(kMany);
        wait_until_left(1000);
        const std::size_t far = far_ones(items, 1).front();
        hl::fibers::run({.workers = 2}, [&] {
          fiber waits([&] { static_cast<void>(items[far].read()); });
          while (current_heap()->arrivals()->any_begun() == false) hl::fibers::this_fiber::yield();
          std::exit(7);
        });
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace hinterland::object::testing
