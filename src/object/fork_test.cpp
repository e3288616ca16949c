// Fork: child and parent have all objects, whatever other threads do at that moment, over every kind of device.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/object_map.hpp"
#include "object/far_writer.hpp"
#include "object/test_support.hpp"
#include "object/testing/far_place.hpp"
#include "object/testing/many_objects.hpp"

namespace hinterland::object::testing {
namespace {

using hl::far::ptr;
using hl::far::scope;

#ifdef __SANITIZE_THREAD__
constexpr int kShare = 4;  // of the work, for all is slower by as much
#else
constexpr int kShare = 1;
#endif

// Runs body() in a child. A child that hangs is ended by SIGALRM.
template <typename Body>
pid_t in_child(Body&& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(100);
  _exit(body());
}
int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// Threads, detached: the thread sanitizer takes it for a mistake that a child's thread has the number of one that is
// not there, and could have been joined.
class Crowd {
 public:
  ~Crowd() { wait(); }
  template <typename Body>
  void start(Body&& body) {
    ++running_;
    std::thread([this, body] {
      body();
      --running_;
    }).detach();
  }
  void wait() {
    while (running_.load() != 0) usleep(1000);
  }

 private:
  std::atomic<int> running_{0};
};

// Far pages that somebody holds, once those of processes that are gone have been given back.
bool wait_until_few_pages(std::uint64_t most) {
  for (const std::uint64_t end = now_ns() + 60'000'000'000; now_ns() < end; usleep(1000))
    if (current_heap()->far().pages_in_use() <= most) return true;
  return false;
}
// What a process may have open or taken without use.
constexpr std::uint64_t kOpenPages = 2 * FarWriter::kPages;

void keep_objects(const std::string& kind, std::size_t count) {
  SCOPED_TRACE(kind);
  const FarPlace place(kind);
  HeapForTest heap(place.url);
  std::vector<ptr<Item>> items = many(as_many_as(count));
  ASSERT_TRUE(wait_until_left(as_many_as(10'000)));
  const pid_t child = in_child([&] {
    if (count_wrong(items) != 0) return 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
      scope held;
      items[i].deref_mut(held)->fill(i + 7);
    }
    const pid_t grandchild = in_child([&] { return count_wrong(items, 7) == 0 ? 0 : 1; });
    for (std::size_t i = 0; i < items.size() / 2; ++i) items[i].write(Item{});
    if (status_of(grandchild) != 0) return 2;
    for (std::size_t i = items.size() / 2; i < items.size(); ++i)
      if (!items[i].read().holds(i + 7)) return 3;
    return current_heap()->figures().left.load() != 0 && current_heap()->figures().brought.load() != 0 ? 0 : 4;
  });
  EXPECT_EQ(count_wrong(items), 0u);
  for (std::size_t i = 0; i < items.size(); ++i) {
    scope held;
    items[i].deref_mut(held)->fill(i + 1);
  }
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(count_wrong(items, 1), 0u);
  items.clear();
  EXPECT_TRUE(wait_until_few_pages(kOpenPages)) << current_heap()->far().pages_in_use();
}

TEST(HeapFork, ChildAndParentKeepTheirObjects) { keep_objects("mem:", 200'000); }
TEST(HeapFork, OverCompressedMemory) { keep_objects("zmem:", 200'000); }
TEST(HeapFork, OverAFile) { keep_objects("file:", 130'000); }
TEST(HeapFork, OverTcp) { keep_objects("tcp:", 130'000); }

TEST(HeapFork, AChildOutlivesItsParent) {
  HeapForTest heap;
  std::vector<ptr<Item>> items = many(as_many_as(200'000));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = in_child([&] {
    const pid_t parent = getpid();
    in_child([&] {
      while (getppid() == parent) usleep(1000);
      const char right = count_wrong(items) == 0 ? 'y' : 'n';
      return write(ends[1], &right, 1) == 1 ? 0 : 1;
    });
    return 0;
  });
  close(ends[1]);
  EXPECT_EQ(status_of(child), 0);
  char right = 0;
  EXPECT_EQ(read(ends[0], &right, 1), 1);
  EXPECT_EQ(right, 'y');
  close(ends[0]);
}

// Large objects, objects with pointers on other threads' stacks, and scopes that are open at the fork.
TEST(HeapFork, OfEverySizeAndWithOpenScopes) {
  HeapForTest heap;
  std::vector<ptr<Known<10'000>>> large;
  for (std::uint64_t i = 0; i < 1500; ++i) large.push_back(make_known<10'000>(i));
  std::atomic<int> ready{0};
  std::atomic<bool> done{false};
  Crowd threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.start([&] {
      ptr<Item> own[200];
      for (auto& item : own) item = make_item(1);
      scope held;  // in the child nobody will close it
      static_cast<void>(own[0].deref(held));
      ++ready;
      while (!done.load()) usleep(1000);
    });
  while (ready.load() != 3) usleep(1000);
  const pid_t child = in_child([&] {
    for (int pass = 0; pass < 2; ++pass)
      for (std::uint64_t i = 0; i < large.size(); ++i) {
        scope held;
        if (!large[i].deref_mut(held)->holds(i)) return 1;
      }
    std::vector<ptr<Item>> others = many(as_many_as(200'000));
    return count_wrong(others) == 0 && current_heap()->memory().used() < current_heap()->memory().limit() * 2 ? 0 : 2;
  });
  EXPECT_EQ(status_of(child), 0);
  done = true;
}

// Two threads fork in a loop while others make, use, move and end objects and use a map: no child hangs, and each has
// every object.
void fork_beside_threads(const std::string& kind, std::size_t count, int forks_each) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a fork beside threads finds the address sanitizer's own allocator locked, which no fork waits for";
#endif
  SCOPED_TRACE(kind);
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  const FarPlace place(kind);
  HeapForTest heap(place.url, HeapOptions::kLocalBytesMin, 2);
  const std::vector<ptr<Item>> items = many(as_many_as(count));
  hl::far::unordered_map<std::uint64_t, std::uint64_t> map;
  for (std::uint64_t key = 0; key < 20'000; ++key) map.insert(key, key * 3);
  std::atomic<bool> done{false}, all_detached{false};
  std::atomic<std::size_t> wrong{0};
  Crowd threads, forkers;
  for (unsigned thread = 0; thread < 3; ++thread)
    threads.start([&, thread] {
      std::mt19937_64 random(seed + thread);
      std::vector<ptr<Item>> own(1000);
      for (std::uint64_t step = 0; !done.load(std::memory_order_relaxed); ++step) {
        const std::uint64_t which = random(), key = random() % 20'000;
        wrong += !items[which % items.size()].read().holds(which % items.size());
        own[which % 1000] = make_item(which);
        std::swap(own[which % 1000], own[key % 1000]);
        if (step % 8 == 0) hl::far::prefetch(&items[key % (items.size() - 32)], 32);
        const std::uint64_t mine = 100'000 + thread * 1000 + which % 1000;
        map.insert_or_assign(mine, mine * 3);
        if (step % 2 == 0) map.erase(mine);
        wrong += map.find(key) != key * 3;
      }
    });
  auto check = [&] {
    if (count_wrong(items) != 0) return 1;
    std::size_t odd = 0;
    map.for_each([&](std::uint64_t key, std::uint64_t value) { odd += value != key * 3; });
    for (std::uint64_t key = 200'000; key < 200'500; ++key) map.insert(key, key * 3);
    return odd == 0 && map.find(200'100) == 600'300 ? 0 : 2;
  };
  std::atomic<int> failed{0};
  for (int forker = 0; forker < 2; ++forker)
    forkers.start([&] {
      while (!all_detached.load()) usleep(1000);
      for (int i = 0; i < forks_each; ++i) failed += status_of(in_child(check)) != 0;
    });
  all_detached = true;
  forkers.wait();
  done = true;
  threads.wait();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(count_wrong(items), 0u);
}

TEST(HeapForkThreads, ForksBesideThreadsThatUseObjects) { fork_beside_threads("mem:", 120'000, 6 / kShare); }
TEST(HeapForkThreads, OverCompressedMemory) { fork_beside_threads("zmem:", 120'000, 2); }
TEST(HeapForkThreads, OverAFile) { fork_beside_threads("file:", 95'000, 1); }
TEST(HeapForkThreads, OverTcp) { fork_beside_threads("tcp:", 95'000, 1); }

}  // namespace
}  // namespace hinterland::object::testing
