// A far map over devices that take their time: nobody holds a lock of it, nor blocks a worker's fibers, while an
// entry is brought.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/object_map.hpp"
#include "object/test_support.hpp"
#include "object/testing/far_place.hpp"
#include "object/testing/many_objects.hpp"
#include "object/testing/run_fibers.hpp"

namespace hinterland::object::testing {
namespace {

using hl::fibers::fiber;

// Somewhat more than there is room for.
constexpr std::uint64_t kMany = as_many_as(130'000);

// All entries are in few slots' way, and many have one hash.
struct FewHashes {
  std::size_t operator()(std::uint64_t key) const { return key / 3; }
};
using Map = hl::far::unordered_map<std::uint64_t, Item, FewHashes>;

Item item_of(std::uint64_t id) {
  Item item;
  item.fill(id);
  return item;
}

void fill(Map& map, std::uint64_t keys) {
  for (std::uint64_t key = 0; key < keys; ++key) map.insert(key, item_of(key));
}

TEST(MapWaits, LookUpsOfManyFibersWaitTogether) {
  HeapForTest heap("sim:latency=10ms,inner=mem:");
  Map map;
  fill(map, kMany);
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  std::atomic<int> waiting{0}, most{0};
  run_fibers(1, 64, [&](std::size_t i) {
    const int now = ++waiting;
    if (now > most) most = now;
    const std::uint64_t key = i * 97;
    const std::optional<Item> found = map.find(key);
    EXPECT_TRUE(found && found->holds(key));
    --waiting;
  });
  EXPECT_GT(most.load(), 8) << "a look-up that blocked the worker would let no other begin";
}

// What the worker's other fiber does to the same entry, and to its shard, while it is on its way.
template <typename Meanwhile>
std::optional<Item> found_while(Map& map, std::uint64_t key, Meanwhile&& meanwhile) {
  std::optional<Item> found;
  hl::fibers::run({.workers = 1}, [&] {
    fiber looks([&] { found = std::as_const(map).find(key); });
    hl::fibers::this_fiber::yield();  // it parks: nothing comes within 10 ms
    meanwhile();
    looks.join();
  });
  return found;
}

class MapWaitsWithOthers : public ::testing::Test {
 protected:
  MapWaitsWithOthers() {
    fill(map_, kKeys);
    others_ = many(kMany);  // before these the map's entries leave
    EXPECT_TRUE(wait_until_left(as_many_as(60'000)));
  }
  static constexpr std::uint64_t kKeys = as_many_as(3000);
  HeapForTest heap_{"sim:latency=10ms,inner=mem:"};
  Map map_;
  std::vector<hl::far::ptr<Item>> others_;
};

TEST_F(MapWaitsWithOthers, OneThatIsErasedIsGone) {
  const std::optional<Item> found = found_while(map_, 300, [&] { EXPECT_TRUE(map_.erase(300)); });
  EXPECT_TRUE(!found || found->holds(300)) << "both wait for it, and one of them is the first";
  EXPECT_FALSE(map_.contains(300));
  EXPECT_FALSE(map_.erase(300));
  for (const std::uint64_t key : {301, 302}) EXPECT_TRUE(map_.find(key)->holds(key)) << "others of its hash stay";
  EXPECT_EQ(map_.size(), kKeys - 1);
}

TEST_F(MapWaitsWithOthers, OneThatIsAssignedHasTheNewValue) {
  const std::optional<Item> found =
      found_while(map_, 300, [&] { EXPECT_FALSE(map_.insert_or_assign(300, item_of(7))); });
  EXPECT_TRUE(found && (found->holds(300) || found->holds(7)));
  EXPECT_TRUE(map_.find(300)->holds(7));
}

TEST_F(MapWaitsWithOthers, OneThatIsErasedAndComesAgainIsTheNewOne) {
  const std::optional<Item> found = found_while(map_, 300, [&] {
    EXPECT_TRUE(map_.erase(300));
    EXPECT_TRUE(map_.insert(300, item_of(8)));
  });
  EXPECT_TRUE(!found || found->holds(300) || found->holds(8));
  EXPECT_TRUE(map_.find(300)->holds(8));
}

TEST_F(MapWaitsWithOthers, TheIndexMayGrow) {
  const std::optional<Item> found = found_while(map_, 300, [&] {
    for (std::uint64_t key = kKeys; key < 3 * kKeys; ++key) map_.insert(key, item_of(key));
  });
  EXPECT_TRUE(found && found->holds(300));
  std::size_t wrong = 0, seen = 0;
  map_.for_each([&](std::uint64_t key, const Item& item) { ++seen, wrong += !item.holds(key); });
  EXPECT_EQ(seen, 3 * kKeys);
  EXPECT_EQ(wrong, 0u);
}

// for_each() finds entries that others bring, too.
TEST_F(MapWaitsWithOthers, ForEachSeesIt) {
  std::size_t seen = 0;
  const std::optional<Item> found = found_while(map_, 300, [&] {
    map_.for_each([&](std::uint64_t key, const Item& item) { seen += key == 300 && item.holds(300); });
  });
  EXPECT_TRUE(found && found->holds(300));
  EXPECT_EQ(seen, 1u);
}

// A child finds the locks free and the index whole, whatever another thread did when it was forked.
TEST(MapWaits, AChildFindsAMapThatIsBeingClearedWhole) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a fork beside threads finds the sanitizer's own locks held, which no fork waits for";
#endif
  HeapForTest heap("mem:");
  Map map;
  constexpr std::uint64_t kKeys = 20'000;
  std::atomic<bool> enough{false};
  std::thread clears([&] {
    while (!enough) {
      fill(map, kKeys);
      map.clear();
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::size_t found = 0, shown = 0;
      for (std::uint64_t key = 0; key < kKeys; ++key) found += std::as_const(map).contains(key) ? 1 : 0;
      map.for_each([&](std::uint64_t, const Item&) { ++shown; });
      _exit(found == shown && shown == map.size() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (status != 0) break;
  }
  enough = true;
  clears.join();
}

// A child has no fiber that would ever put the entry back; it is there all the same, to be found, changed and ended.
TEST_F(MapWaitsWithOthers, AChildHasIt) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a fork beside threads finds the address sanitizer's own allocator locked, which no fork waits for";
#endif
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "in the child of a fiber the thread sanitizer has forgotten what fibers ordered";
#endif
  const std::optional<Item> found = found_while(map_, 300, [&] {
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      bool right = map_.find(300)->holds(300);
      right &= map_.visit(300, [](Item& there) { there.fill(5); }) && map_.find(300)->holds(5);
      right &= map_.erase(300) && !map_.contains(300) && map_.find(301)->holds(301);
      right &= map_.insert(300, item_of(6)) && map_.find(300)->holds(6) && map_.size() == kKeys;
      _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
  EXPECT_TRUE(found && found->holds(300));
}

// Each holds one map for sharing while it looks into the other: neither waits for a map alone.
TEST(MapWaits, MapsAreLookedIntoFromEachOther) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "two locks in either order are a deadlock to the thread sanitizer, also for sharing";
#endif
  HeapForTest heap("sim:latency=100us,inner=mem:");
  Map one, other;
  fill(one, kMany / 2);
  fill(other, kMany / 2);
  constexpr std::uint64_t kLooks = as_many_as(30'000);
  std::atomic<std::uint64_t> looks{0};
  const auto join = [&looks](const Map& from, const Map& into, std::uint64_t state) {
    from.for_each([&](std::uint64_t, const Item&) {
      if (looks > kLooks) return;
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t key = (state >> 33) % (kMany / 2);
      const std::optional<Item> found = into.find(key);
      EXPECT_TRUE(found && found->holds(key));
      ++looks;
    });
  };
  std::thread beside([&] { join(other, one, 7); });
  join(one, other, 1);
  beside.join();
  EXPECT_GT(looks.load(), kLooks);
}

// Random calls by fibers of several threads, with threads beside: of keys of one's own, whose state is known, and of
// keys that all change, which add up in the end.
void run_model(const std::string& kind, unsigned workers, std::size_t fibers, int steps) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE(kind + ", HINTERLAND_TEST_SEED=" + std::to_string(seed));
  const FarPlace place(kind);
  HeapForTest heap(place.url, HeapOptions::kLocalBytesMin, 2);
  constexpr std::uint64_t kOwn = 60, kCounters = 40, kFirstOwn = 10 * kMany;
  std::atomic<std::size_t> wrong{0}, lost{0}, counted{0};
  {
    Map map;
    hl::far::unordered_map<std::uint64_t, std::uint64_t, FewHashes> counters;
    fill(map, kMany);
    for (std::uint64_t key = 0; key < kCounters; ++key) counters.insert(key, 0);
    auto work = [&](std::size_t number) {
      std::mt19937_64 random(seed + number);
      std::unordered_map<std::uint64_t, std::uint64_t> own;
      for (int step = 0; step < steps / kSlowdown; ++step) try {
          const std::uint64_t id = random(), key = kFirstOwn + number * kOwn + random() % kOwn,
                              any = random() % kMany;
          switch (random() % 8) {
            case 0:
              wrong += map.insert(key, item_of(id)) != own.emplace(key, id).second;
              break;
            case 1:
              wrong += map.insert_or_assign(key, item_of(id)) != own.insert_or_assign(key, id).second;
              break;
            case 2:
              wrong += map.erase(key) != (own.erase(key) == 1);
              break;
            case 3: {
              const std::optional<Item> found = map.find(key);
              const auto known = own.find(key);
              wrong += found.has_value() != (known != own.end()) || (found && !found->holds(known->second));
              break;
            }
            case 4:
              wrong += !counters.visit(random() % kCounters, [](std::uint64_t& count) { ++count; });
              ++counted;
              break;
            default:
              wrong += !map.visit(any, [&](const Item& there) { wrong += !there.holds(any); });
          }
        } catch (const hl::far::object_lost&) {
          ++lost;  // only of failing devices: nothing was done
        }
    };
    std::vector<std::thread> beside;
    for (std::size_t i = 0; i < 2; ++i) beside.emplace_back([&, i] { work(fibers + i); });
    run_fibers(workers, fibers, work);
    for (std::thread& each : beside) each.join();
    if (kind.find("fail") == std::string::npos) {
      std::size_t sum = 0;
      counters.for_each([&](std::uint64_t, std::uint64_t count) { sum += count; });
      EXPECT_EQ(sum, counted.load());
      std::size_t seen = 0;
      map.for_each([&](std::uint64_t key, const Item& there) { seen += key < kMany && there.holds(key); });
      EXPECT_EQ(seen, kMany);
    }
  }
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(lost.load() != 0, kind.find("fail") != std::string::npos);
  EXPECT_GT(heap->figures().brought.load(), 100u);
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u) << "everything has ended";
}

TEST(MapWaitsModel, OverMemory) { run_model("mem:", 2, 20, 8000); }
TEST(MapWaitsModel, OverADeviceThatTakesItsTime) { run_model("sim:latency=20us,inner=mem:", 3, 40, 4000); }
TEST(MapWaitsModel, OneWorker) { run_model("sim:latency=20us,inner=mem:", 1, 40, 3000); }
TEST(MapWaitsModel, OverTcp) { run_model("tcp:", 3, 40, 3000); }
TEST(MapWaitsModel, OverADeviceThatFails) {
  hl::far::throw_when_lost(true);
  run_model("sim:latency=10us,fail_reads=0.02,corrupt=0.01,seed=9,inner=mem:", 3, 40, 3000);
  hl::far::throw_when_lost(false);
}

}  // namespace
}  // namespace hinterland::object::testing
