#include "far/space.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "far/mem_device.hpp"

namespace hinterland::far {
namespace {

std::uint64_t test_seed() {
  const char* given = std::getenv("HINTERLAND_TEST_SEED");
  std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

struct SpaceTest : ::testing::Test {
  void open(std::uint64_t device_bytes, std::uint64_t table_bytes = 4 * kGiB,
            const std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)>& wrap = std::identity{}) {
    auto opened = open_mem_device(device_bytes);
    ASSERT_TRUE(opened);
    device = wrap(std::move(*opened));
    auto created = Space::create(*device, table_bytes);
    ASSERT_TRUE(created);
    space = std::move(*created);
  }
  std::vector<FarPage> take(std::size_t count) {
    std::vector<FarPage> pages(count);
    int error = 0;
    pages.resize(space->allocate(pages, &error));
    EXPECT_EQ(error, pages.empty() && count != 0 ? ENOSPC : 0);
    return pages;
  }
  // Slabs that the device still has for others; they are given back.
  std::size_t free_slabs() {
    std::vector<std::uint32_t> taken;
    for (;;) {
      auto slab = device->allocate_slab();
      if (!slab) break;
      taken.push_back(*slab);
    }
    for (std::uint32_t slab : taken) device->release_slab(slab);
    return taken.size();
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Space> space;
};

TEST_F(SpaceTest, GivesAdjacentPagesInOneCall) {
  open(256 * kMiB);
  auto first = take(64), second = take(64);
  ASSERT_EQ(first.size(), 64u);
  for (std::size_t i = 1; i < 64; ++i) EXPECT_EQ(first[i].value, first[i - 1].value + 1);
  EXPECT_EQ(second[0].value, first[63].value + 1) << "sequential victims get sequential pages across calls";
}

TEST_F(SpaceTest, FindsAdjacentPagesBetweenFragments) {
  open(kSlabBytes);
  auto all = take(kSlabPages);
  ASSERT_EQ(all.size(), kSlabPages);
  std::vector<FarPage> free;
  for (std::uint32_t i = 0; i < 1000; i += 2) free.push_back(all[i]);
  for (std::uint32_t i = 2000; i < 2032; ++i) free.push_back(all[i]);
  space->release(free);
  auto run = take(32);
  ASSERT_EQ(run.size(), 32u);
  for (std::size_t i = 1; i < run.size(); ++i) EXPECT_EQ(run[i].value, run[i - 1].value + 1);
  EXPECT_EQ(take(1000).size(), 500u) << "the fragments are used when nothing else is left";
}

TEST_F(SpaceTest, SaysWhenTheDeviceIsFullAndGoesOnWhenPagesComeBack) {
  open(2 * kSlabBytes);
  auto all = take(3 * kSlabPages);
  EXPECT_EQ(all.size(), 2 * kSlabPages);
  EXPECT_EQ(space->pages_in_use(), 2 * kSlabPages);
  EXPECT_TRUE(take(1).empty());
  space->release(std::span(all).first(1));
  auto again = take(5);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0], all[0]);
}

TEST_F(SpaceTest, TablesBoundTheSpace) {
  open(0, kSlabBytes);  // a quarter and 16 slabs more than asked
  auto all = take(64 * kSlabPages);
  EXPECT_GE(all.size(), kSlabPages);
  EXPECT_LE(all.size(), 18 * kSlabPages);
}

TEST_F(SpaceTest, GivesEmptySlabsBackButKeepsTheCurrentAndASpare) {
  open(8 * kSlabBytes);
  auto all = take(8 * kSlabPages);
  ASSERT_EQ(all.size(), 8 * kSlabPages);
  EXPECT_EQ(free_slabs(), 0u);
  space->release(all);
  EXPECT_EQ(space->pages_in_use(), 0u);
  EXPECT_EQ(free_slabs(), 6u);
}

TEST_F(SpaceTest, CountsHolders) {
  open(64 * kMiB);
  auto pages = take(10);
  space->retain(pages);
  space->release(pages);
  EXPECT_EQ(space->pages_in_use(), 10u);
  space->release(pages);
  EXPECT_EQ(space->pages_in_use(), 0u);
  EXPECT_DEATH(space->release(pages), "does not hold");
}

TEST_F(SpaceTest, AForkedChildSharesPagesAndTakesItsOwn) {
  open(8 * kSlabBytes);
  auto shared = take(100);
  space->retain(shared);
  pid_t child = fork();
  if (child == 0) {
    if (!device->after_fork_in_child()) _exit(1);
    space->after_fork_in_child();
    std::set<FarPage> before(shared.begin(), shared.end());
    std::vector<FarPage> mine(200);
    int error = 0;
    if (space->allocate(mine, &error) != 200) _exit(2);
    for (FarPage page : mine)
      if (before.contains(page) || page.slab() == shared[0].slab()) _exit(3);
    space->release(shared);
    space->release(std::span(mine).first(50));
    if (space->pages_in_use() != 250) _exit(4);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(space->pages_in_use(), 250u);
  space->release(shared);
  EXPECT_EQ(space->pages_in_use(), 150u);
}

TEST_F(SpaceTest, PagesOfADeadChildsSlabAreUsedWhenTheDeviceIsFull) {
  open(2 * kSlabBytes);
  auto mine = take(kSlabPages);
  pid_t child = fork();
  if (child == 0) {
    if (!device->after_fork_in_child()) _exit(1);
    space->after_fork_in_child();
    std::vector<FarPage> pages(96);
    int error = 0;
    _exit(space->allocate(pages, &error) == 96 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(take(kSlabPages).size(), kSlabPages - 96);
}

TEST_F(SpaceTest, AChildKilledWhileItWorksHoldsNobodyUp) {
  open(16 * kSlabBytes);
  for (int round = 0; round < 5; ++round) {
    pid_t child = fork();
    if (child == 0) {
      if (!device->after_fork_in_child()) _exit(1);
      space->after_fork_in_child();
      std::vector<FarPage> pages(64);
      for (int error = 0;;) {
        std::size_t count = space->allocate(pages, &error);
        space->release(std::span(pages).first(count));
      }
    }
    usleep(5000);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    auto mine = take(500);
    ASSERT_EQ(mine.size(), 500u);
    space->release(mine);
  }
}

// A child that holds 100 pages with its parent and takes 200 of its own, and then does what `end` says.
template <typename End>
pid_t fork_holder(Device& device, Space& space, std::span<const FarPage> shared, End end) {
  space.begin_child();
  space.retain(shared);
  int ready[2];
  if (pipe(ready) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    if (!device.after_fork_in_child()) _exit(1);
    space.after_fork_in_child();
    space.enter_process();
    std::vector<FarPage> mine(200);
    int error = 0;
    if (space.allocate(mine, &error) != 200 || write(ready[1], "", 1) != 1) _exit(2);
    end();
    _exit(0);
  }
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

TEST_F(SpaceTest, LetsGoForAChildThatWasKilled) {
  open(8 * kSlabBytes);
  space->enter_process();
  auto shared = take(100);
  pid_t child = fork_holder(*device, *space, shared, [] { pause(); });
  EXPECT_FALSE(space->reap());  // it lives
  EXPECT_EQ(space->pages_in_use(), 300u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  while (space->reap()) {
  }
  EXPECT_EQ(space->pages_in_use(), 100u);
  EXPECT_EQ(free_slabs(), 7u);
  space->release(shared);
  EXPECT_EQ(space->pages_in_use(), 0u);
}

// A device at which this process ends, instead of discarding pages, once it is told to.
class EndsInDiscard final : public Device {
 public:
  explicit EndsInDiscard(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  DeviceUsage usage() const override { return inner_->usage(); }
  Result<std::uint32_t> allocate_slab() override { return inner_->allocate_slab(); }
  void release_slab(std::uint32_t slab) override { inner_->release_slab(slab); }
  void discard(std::span<const FarPage> pages) override {
    if (ends) _exit(0);
    inner_->discard(pages);
  }
  Result<std::unique_ptr<Channel>> open_channel() override { return inner_->open_channel(); }
  Status after_fork_in_child() override { return inner_->after_fork_in_child(); }

  bool ends = false;

 private:
  std::unique_ptr<Device> inner_;
};

// Its batch of pages goes to who reaps next: those of its own, of which it had let go, and those that only it held.
TEST_F(SpaceTest, AReaperThatEndsLeavesNothingBehind) {
  EndsInDiscard* ends = nullptr;
  open(8 * kSlabBytes, 4 * kGiB, [&ends](std::unique_ptr<Device> inner) {
    auto wrapped = std::make_unique<EndsInDiscard>(std::move(inner));
    ends = wrapped.get();
    return wrapped;
  });
  auto shared = take(100);
  // A reaper that waits until the one that holds pages is gone.
  int gone[2];
  ASSERT_EQ(pipe(gone), 0);
  pid_t reaper = fork_holder(*device, *space, shared, [&] {
    char byte;
    if (read(gone[0], &byte, 1) != 1) _exit(1);
    ends->ends = true;
    while (space->reap()) {
    }
    _exit(2);  // it had nothing to discard
  });
  pid_t holder = fork_holder(*device, *space, shared, [] { pause(); });
  EXPECT_EQ(space->pages_in_use(), 500u);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  ASSERT_EQ(write(gone[1], "", 1), 1);
  int status = -1;
  waitpid(reaper, &status, 0);
  EXPECT_EQ(status, 0);
  close(gone[0]);
  close(gone[1]);
  while (space->reap()) {
  }
  EXPECT_EQ(space->pages_in_use(), 100u);
  EXPECT_EQ(free_slabs(), 7u);
  space->release(shared);
  EXPECT_EQ(space->pages_in_use(), 0u);
}

TEST_F(SpaceTest, LetsGoForAChildThatBecameAnotherProgram) {
  open(8 * kSlabBytes);
  auto shared = take(100);
  pid_t child =
      fork_holder(*device, *space, shared, [] { execl("/bin/sleep", "sleep", "250", static_cast<char*>(nullptr)); });
  for (int tries = 0; space->pages_in_use() != 100 && tries < 20'000; ++tries) {
    usleep(5000);
    space->reap();
  }
  EXPECT_EQ(space->pages_in_use(), 100u);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it should still run";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SpaceTest, AChildLetsGoForItsParent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer takes a mutex that the parent held for one that the child holds";
#endif
  open(8 * kSlabBytes);
  int result[2];
  ASSERT_EQ(pipe(result), 0);
  pid_t parent = fork();
  if (parent == 0) {
    if (!device->after_fork_in_child()) _exit(1);
    space->after_fork_in_child();  // without a place: nothing is noted for this one, so it makes a space of its own
    auto own = Space::create(*device, 4 * kSlabBytes);
    if (!own) _exit(2);
    (*own)->enter_process();
    std::vector<FarPage> pages(100);
    int error = 0;
    if ((*own)->allocate(pages, &error) != 100) _exit(3);
    pid_t mine = getpid();
    fork_holder(*device, **own, pages, [&] {
      while (getppid() == mine) usleep(1000);
      while (!(*own)->reap()) usleep(1000);
      while ((*own)->reap()) {
      }
      char well = (*own)->pages_in_use() == 300 ? 'y' : 'n';  // the shared ones are its own now
      if (write(result[1], &well, 1) != 1) _exit(1);
    });
    _exit(0);
  }
  waitpid(parent, nullptr, 0);
  char well = '?';
  EXPECT_EQ(read(result[0], &well, 1), 1);
  EXPECT_EQ(well, 'y');
  close(result[0]);
  close(result[1]);
}

TEST_F(SpaceTest, AForkThatFailedLeavesNothingBehind) {
  open(8 * kSlabBytes);
  auto pages = take(1000);
  for (int tries = 0; tries < 600; ++tries) {  // more often than there are places
    space->begin_child();
    space->retain(pages);
    space->cancel_child();
  }
  space->release(pages);
  EXPECT_EQ(space->pages_in_use(), 0u);
}

TEST_F(SpaceTest, ThreadsNeverGetTheSamePage) {
  open(32 * kSlabBytes);
  constexpr int kThreads = 4;
  std::vector<std::atomic<std::uint8_t>> taken(32 * kSlabPages);
  std::atomic<int> clashes = 0;
  std::uint64_t seed = test_seed();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + static_cast<unsigned>(t));
      std::vector<FarPage> held;
      for (int step = 0; step < 1500; ++step) {
        std::vector<FarPage> some(1 + random() % 64);
        int error = 0;
        std::size_t count = space->allocate(some, &error);
        for (std::size_t i = 0; i < count; ++i) {
          if (taken[some[i].value].exchange(1) != 0) ++clashes;
          held.push_back(some[i]);
        }
        while (held.size() > 5000) {
          std::swap(held[random() % held.size()], held.back());
          taken[held.back().value] = 0;
          space->release(std::span(held).last(1));
          held.pop_back();
        }
      }
      for (FarPage page : held) taken[page.value] = 0;
      space->release(held);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0) << "seed " << seed;
  EXPECT_EQ(space->pages_in_use(), 0u);
}

// Random calls against a model: a map from page to number of holders.
TEST_F(SpaceTest, BehavesLikeItsModel) {
  constexpr std::uint32_t kSlabs = 3;
  open(kSlabs * kSlabBytes);
  std::uint64_t seed = test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<FarPage, int> model;
  auto pick = [&] {
    return std::next(model.begin(), static_cast<long>(random() % std::min<std::size_t>(model.size(), 64)));
  };
  for (int step = 0; step < 6'000; ++step) {
    std::uint64_t choice = random() % 100;
    if (choice < 45) {
      std::vector<FarPage> pages(1 + random() % 100);
      int error = 0;
      std::size_t count = space->allocate(pages, &error);
      ASSERT_EQ(count, std::min(pages.size(), kSlabs * kSlabPages - model.size())) << "step " << step;
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(model.emplace(pages[i], 1).second) << "step " << step;
    } else if (choice < 55 && !model.empty()) {
      auto it = pick();
      space->retain({&it->first, 1});
      ++it->second;
    } else {
      std::vector<FarPage> pages;
      for (std::uint64_t n = random() % 130; n > 0 && !model.empty(); --n) {
        auto it = pick();
        pages.push_back(it->first);
        if (--it->second == 0) model.erase(it);
      }
      space->release(pages);
    }
    ASSERT_EQ(space->pages_in_use(), model.size()) << "step " << step;
  }
}

}  // namespace
}  // namespace hinterland::far
