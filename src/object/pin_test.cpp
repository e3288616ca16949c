// Far objects in coroutines: co_await p.pin(), and the loops in which they go on.
#include "hinterland/object_pin.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "object/arrivals.hpp"
#include "object/test_support.hpp"
#include "object/testing/far_place.hpp"
#include "object/testing/many_objects.hpp"

namespace hinterland::object::testing {
namespace {

using namespace std::chrono_literals;
using hl::far::arrivals;
using hl::far::pinned;
using hl::far::ptr;
using hl::far::scope;
using Record = Item;

// Somewhat more than there is room for.
constexpr std::size_t kRecords = as_many_as(130'000);

// A coroutine that begins at once, and whose owner ends it.
class Task {
 public:
  struct promise_type {
    std::exception_ptr error;
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool done() const { return handle_.done(); }
  void rethrow() const {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

std::vector<ptr<Record>> records(std::size_t count = kRecords) { return many(count); }

bool has_left(const ptr<Record>& p) { return is_kind(p.far_word()->load(), kFar); }

std::vector<std::size_t> those_that_left(const std::vector<ptr<Record>>& items, std::size_t count) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; found.size() < count && at < items.size(); at += 97)
    if (has_left(items[at])) found.push_back(at);
  EXPECT_EQ(found.size(), count);
  return found;
}

Task look(const ptr<Record>& p, std::uint64_t id, std::size_t* right) {
  pinned<const Record> there = co_await p.pin();
  *right += there->holds(id);
}

// A library from before there were coroutines has no room for what they call.
TEST(Versions, OfAnOlderLibraryNothingIsAsked) {
  const std::uint32_t now = std::exchange(hl_objects.abi_version, hl::far::detail::kAbiVersion - 1);
  EXPECT_EQ(arrivals().descriptor(), -1);
  ptr<Record> local = hl::far::make<Record>();
  {
    scope held;
    EXPECT_NE(local.deref(held), nullptr);
  }
  int error = 0;
  try {
    hl::far::start({});
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  EXPECT_EQ(error, ENOTSUP);
  EXPECT_EQ(hl_objects.size, 0);
  hl_objects.abi_version = now;
}

TEST(HeapPin, WhatIsLocalGoesOnAtOnce) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Record>> items = records(10);
  std::size_t right = 0;
  Task task = look(items[3], 3, &right);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(right, 1u);
}

TEST(HeapPin, ADeviceThatAnswersAtOnceLetsNobodyWait) {
  for (const char* url : {"mem:", "zmem:"}) {
    HeapForTest heap(url);
    std::vector<ptr<Record>> items = records();
    ASSERT_TRUE(wait_until_left(1000));
    const std::size_t far = those_that_left(items, 1).front();
    std::size_t right = 0;
    Task task = look(items[far], far, &right);
    EXPECT_TRUE(task.done());
    EXPECT_EQ(right, 1u);
    EXPECT_EQ(heap->arrivals(), nullptr);
  }
}

TEST(HeapPin, WithoutAHeapAllIsLocal) {
  ptr<Record> p = make_item(9);
  std::size_t right = 0;
  Task task = look(p, 9, &right);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(right, 1u);
  EXPECT_EQ(arrivals::of_this_thread().poll(), 0u);
}

TEST(HeapPin, WhoWaitsGoesOnInThePollOfItsThread) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(1000));
  const std::vector<std::size_t> far = those_that_left(items, 32);
  std::size_t right = 0;
  std::vector<Task> tasks;
  for (std::size_t at : far) tasks.push_back(look(items[at], at, &right));
  EXPECT_EQ(right, 0u) << "all of them wait";
  std::thread([&] { EXPECT_EQ(arrivals::of_this_thread().poll(), 0u); }).join();
  while (right < far.size()) EXPECT_GT(arrivals::of_this_thread().wait(60s), 0u);
  for (const Task& task : tasks) EXPECT_TRUE(task.done());
  EXPECT_EQ(arrivals::of_this_thread().wait(1us), 0u);
}

// A loop that sleeps in poll(2) wakes for what arrives, and for what is begun while it sleeps.
TEST(HeapPin, TheDescriptorWakesALoop) {
  for (const std::string kind : {"tcp:", "sim:latency=1ms,inner=mem:", "file:"}) {
    SCOPED_TRACE(kind);
    const FarPlace place(kind);
    HeapForTest heap(place.url);
    std::vector<ptr<Record>> items = records();
    ASSERT_TRUE(wait_until_left(as_many_as(10'000)));
    const std::vector<std::size_t> far = those_that_left(items, 20);
    arrivals loop;
    pollfd readable{loop.descriptor(), POLLIN, 0};
    ASSERT_GE(readable.fd, 0);
    std::size_t right = 0;
    auto follow = [&]() -> Task {
      for (std::size_t at : far) {
        auto there = co_await items[at].pin(loop);
        right += there->holds(at);
      }
    };
    std::vector<Task> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(follow());
    for (int woken = 0; right < 3 * far.size() && woken < 100'000; ++woken) {
      ASSERT_EQ(::poll(&readable, 1, 60'000), 1);
      loop.poll();
      EXPECT_EQ(loop.descriptor(), readable.fd);
    }
    EXPECT_EQ(right, 3 * far.size());
    loop.poll();
    EXPECT_EQ(::poll(&readable, 1, 0), 0) << "nothing is left to do";
  }
}

// A pinned object stays, whatever evacuators do; what is not pinned leaves.
TEST(HeapPin, WhatIsPinnedStays) {
  HeapForTest heap("sim:latency=10us,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(1000));
  const std::size_t far = those_that_left(items, 1).front();
  std::vector<pinned<Record>> held;
  auto hold = [&](std::size_t at) -> Task { held.push_back(co_await items[at].pin_mut()); };
  Task first = hold(kRecords - 1), second = hold(far);
  while (held.size() < 2) arrivals::of_this_thread().wait(60s);
  const Record* where = held[1].get();
  ptr<Record> moved = std::move(items[far]);
  held[1]->fill(5);
  const std::uint64_t before = heap->figures().left.load();
  std::vector<ptr<Record>> more = records();
  ASSERT_TRUE(wait_until_left(before + as_many_as(20'000)));
  {
    scope look;
    EXPECT_EQ(moved.deref(look), where);
    EXPECT_TRUE(where->holds(5));
  }
  EXPECT_GE(heap->local().region_of(where).pins.load(), 1u);
  std::thread([given = std::move(held)] {}).join();  // ends in another thread
  EXPECT_EQ(heap->local().region_of(where).pins.load(), 0u);
  for (int round = 0; round < 20 && !has_left(moved); ++round) {
    const std::uint64_t left = heap->figures().left.load();
    std::vector<ptr<Record>> others = records();
    ASSERT_TRUE(wait_until_left(left + as_many_as(20'000)));
  }
  EXPECT_TRUE(has_left(moved));
  EXPECT_TRUE(moved.read().holds(5));
}

TEST(HeapPin, ACoroutineMayEndWhileItWaits) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(1000));
  const std::vector<std::size_t> far = those_that_left(items, 9);
  std::size_t right = 0;
  {
    std::vector<Task> tasks;
    for (std::size_t at : far) tasks.push_back(look(items[at], at, &right));
  }
  {  // and when it has arrived, but not gone on
    Task task = look(items[far[0]], far[0], &right);
    EXPECT_TRUE(items[far[0]].read().holds(far[0]));
  }
  EXPECT_EQ(arrivals::of_this_thread().wait(20ms), 0u);
  EXPECT_EQ(right, 0u);
  for (std::size_t at : far) {
    scope held;
    const Record* there = items[at].deref(held);
    EXPECT_TRUE(there->holds(at));
    EXPECT_EQ(heap->local().region_of(there).pins.load(), 0u) << "nothing is pinned for it";
  }
}

TEST(HeapPin, ALoopMayEndWhileCoroutinesWait) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(1000));
  const std::size_t far = those_that_left(items, 1).front();
  bool went_on = false;
  std::unique_ptr<Task> task;
  std::thread([&] {
    auto waits = [&]() -> Task {
      co_await items[far].pin();
      went_on = true;
    };
    task = std::make_unique<Task>(waits());
  }).join();
  EXPECT_TRUE(items[far].read().holds(far));
  EXPECT_FALSE(went_on);
  task.reset();
}

TEST(HeapPin, WhatIsLostIsThrownInTheCoroutineThatAsked) {
  hl::far::throw_when_lost(true);
  HeapForTest heap("sim:latency=1ms,fail_reads=0.5,seed=5,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(as_many_as(60'000)));
  const std::vector<std::size_t> far = those_that_left(items, 64);
  std::size_t right = 0, lost = 0, ended = 0;
  auto watch = [&](std::size_t at) -> Task {
    try {
      auto there = co_await items[at].pin();
      right += there->holds(at);
    } catch (const hl::far::object_lost& error) {
      EXPECT_EQ(error.code().value(), EIO);
      ++lost;
    }
    ++ended;
  };
  std::vector<Task> tasks;
  for (std::size_t at : far) tasks.push_back(watch(at));
  while (ended < far.size()) EXPECT_GT(arrivals::of_this_thread().wait(60s), 0u);
  EXPECT_EQ(right + lost, far.size());
  EXPECT_GT(right, 5u);
  EXPECT_GT(lost, 5u);
  hl::far::throw_when_lost(false);
}

// Parent and child each go on with the coroutines that waited at the fork.
TEST(HeapPin, Fork) {
  HeapForTest heap("sim:latency=1ms,inner=mem:");
  std::vector<ptr<Record>> items = records();
  ASSERT_TRUE(wait_until_left(1000));
  const std::vector<std::size_t> far = those_that_left(items, 30);
  std::size_t right = 0;
  static_cast<void>(arrivals::of_this_thread().descriptor());
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < 10; ++i) tasks.push_back(look(items[far[i]], far[i], &right));
  const pid_t child = fork();
  if (child == 0) alarm(100);
  for (std::size_t i = 10; i < 30; ++i) tasks.push_back(look(items[far[i]], far[i], &right));
  pollfd readable{arrivals::of_this_thread().descriptor(), POLLIN, 0};
  while (right < 30) {
    if (::poll(&readable, 1, 60'000) != 1) break;
    arrivals::of_this_thread().poll();
  }
  if (child == 0) _exit(right == 30 ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(right, 30u);
}

// Many loops and threads that block, over the same objects, with little memory.
void run_loops(const std::string& kind, int awaits) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE(kind + ", HINTERLAND_TEST_SEED=" + std::to_string(seed));
  const FarPlace place(kind);
  HeapForTest heap(place.url, HeapOptions::kLocalBytesMin, 2);
  std::vector<ptr<Record>> items = records();
  std::vector<ptr<Known<3000>>> large;
  for (std::uint64_t i = 0; i < 2000; ++i) large.push_back(make_known<3000>(i));
  std::atomic<std::size_t> wrong{0}, lost{0};
  std::atomic<bool> done{false};
  std::thread blocks([&] {
    std::mt19937_64 random(seed);
    while (!done) try {
        const std::size_t at = random() % 2 == 0 ? random() % 256 : random() % kRecords;
        wrong += !items[at].read().holds(at);
      } catch (const hl::far::object_lost&) {
        ++lost;
      }
  });
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      std::size_t running = 0;
      auto walk = [&](std::uint64_t own_seed) -> Task {
        std::mt19937_64 random(own_seed);
        for (int i = 0; i < awaits / kSlowdown; ++i) try {
            // Half of it in a corner, where all meet.
            const std::size_t at = random() % 2 == 0 ? random() % 256 : random() % kRecords;
            pinned<const Record> there = co_await items[at].pin();
            const std::size_t big = random() % large.size();
            if (i % 8 == 0) {
              auto other = co_await large[big].pin();
              wrong += !other->holds(big);
            }
            wrong += !there->holds(at);
          } catch (const hl::far::object_lost&) {
            ++lost;
          }
        --running;
      };
      std::vector<Task> tasks;
      for (std::uint64_t i = 0; i < 20; ++i) ++running, tasks.push_back(walk(seed + thread * 100 + i));
      while (running != 0) arrivals::of_this_thread().wait(10ms);
      for (const Task& task : tasks) EXPECT_TRUE(task.done()), task.rethrow();
    });
  for (auto& thread : threads) thread.join();
  done = true;
  blocks.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(lost.load() != 0, kind.find("fail") != std::string::npos);
  std::size_t pinned_still = 0;
  for (const auto& each : items)
    if (const std::uint64_t value = each.far_word()->load(); is_local(value))
      pinned_still += heap->local().region_of(address_of(value)).pins.load() != 0;
  EXPECT_EQ(pinned_still, 0u);
  items.clear(), large.clear();
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u) << "everything has ended";
}

TEST(HeapPinModel, OverMemory) { run_loops("mem:", 4000); }
TEST(HeapPinModel, OverADeviceThatTakesItsTime) { run_loops("sim:latency=20us,inner=mem:", 1500); }
TEST(HeapPinModel, OverAFile) { run_loops("file:", 500); }
TEST(HeapPinModel, OverTcp) { run_loops("tcp:", 1000); }
TEST(HeapPinModel, OverADeviceThatFails) {
  hl::far::throw_when_lost(true);
  run_loops("sim:latency=10us,fail_reads=0.02,corrupt=0.01,fail_writes=0.01,seed=4,inner=mem:", 1500);
  hl::far::throw_when_lost(false);
}

}  // namespace
}  // namespace hinterland::object::testing
