// Mutex, condition variable, semaphore, channel: among fibers, and with ordinary threads.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"

namespace {

using namespace hl::fibers;
using namespace std::chrono_literals;

void join_all(std::vector<fiber>& fibers) {
  for (fiber& each : fibers) each.join();
}

TEST(FiberMutex, ExcludesFibersAndThreads) {
  mutex mutual;
  std::int64_t count = 0;
  auto add = [&] {
    for (int i = 0; i < 2000; ++i) {
      std::lock_guard lock(mutual);
      ++count;
    }
  };
  std::thread outside(add);
  run({.workers = 3}, [&] {
    std::vector<fiber> fibers;
    for (int i = 0; i < 8; ++i) fibers.emplace_back(add);
    join_all(fibers);
  });
  outside.join();
  EXPECT_EQ(count, 18'000);
}

TEST(FiberMutex, GoesToWhoWaitsLongest) {
  run({.workers = 1}, [] {
    mutex mutual;
    std::string order;
    mutual.lock();
    EXPECT_FALSE(mutual.try_lock());
    std::vector<fiber> fibers;
    for (char name : {'a', 'b', 'c'})
      fibers.emplace_back([&, name] {
        mutual.lock();
        order += name;
        this_fiber::yield();
        mutual.unlock();
      });
    this_fiber::yield();
    mutual.unlock();
    EXPECT_FALSE(mutual.try_lock());  // handed over
    join_all(fibers);
    EXPECT_EQ(order, "abc");
    EXPECT_TRUE(mutual.try_lock());
    mutual.unlock();
  });
}

TEST(FiberConditionVariable, WakesOneOrAll) {
  run({.workers = 2}, [] {
    mutex mutual;
    condition_variable changed;
    int waiting = 0, go = 0;
    std::vector<fiber> fibers;
    for (int i = 0; i < 5; ++i)
      fibers.emplace_back([&] {
        std::unique_lock lock(mutual);
        ++waiting;
        changed.wait(lock, [&] { return go > 0; });
        --go;
      });
    auto with = [&](auto&& body) {
      std::lock_guard lock(mutual);
      return body();
    };
    while (with([&] { return waiting; }) < 5) this_fiber::yield();
    with([&] { return go = 1; });
    changed.notify_one();
    while (with([&] { return go; }) != 0) this_fiber::yield();
    with([&] { return go = 4; });
    changed.notify_all();
    join_all(fibers);
    EXPECT_EQ(go, 0);
  });
}

TEST(FiberConditionVariable, WaitsNoLongerThanSaid) {
  auto check = [] {
    mutex mutual;
    condition_variable never;
    std::unique_lock lock(mutual);
    auto begin = clock::now();
    EXPECT_FALSE(never.wait_for(lock, 5ms));
    EXPECT_GE(clock::now() - begin, 5ms);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(never.wait_until(lock, clock::now() + 1ms, [] { return false; }));
    EXPECT_TRUE(never.wait_until(lock, clock::now() - 1ms, [] { return true; }));
    never.notify_all();  // nobody is left in the list
  };
  run({.workers = 2}, check);
  check();
}

// Notifying and the time race for each waiter: exactly one of them wins, and no notice is lost.
TEST(FiberConditionVariable, NoticesRaceTimes) {
  run({.workers = 3}, [] {
    mutex mutual;
    condition_variable changed;
    std::uint64_t notices = 0, taken = 0;
    bool over = false;
    std::vector<fiber> fibers;
    for (int i = 0; i < 6; ++i)
      fibers.emplace_back([&, i] {
        std::unique_lock lock(mutual);
        for (int round = 0; !over || notices != 0; ++round) {
          changed.wait_for(lock, std::chrono::microseconds(1 + (round * 7 + i * 13) % 60));
          if (notices != 0) --notices, ++taken;
        }
      });
    for (int i = 0; i < 3000; ++i) {
      {
        std::lock_guard lock(mutual);
        ++notices;
      }
      changed.notify_one();
      if (i % 16 == 0) this_fiber::yield();
    }
    {
      std::lock_guard lock(mutual);
      over = true;
    }
    changed.notify_all();
    join_all(fibers);
    EXPECT_EQ(taken, 3000u);
  });
}

TEST(FiberSemaphore, LetsSoManyIn) {
  run({.workers = 3}, [] {
    semaphore slots(3);
    std::atomic<int> inside{0}, most{0};
    parallel_for(0, 300, [&](std::size_t) {
      slots.acquire();
      int now = ++inside, seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      this_fiber::yield();
      --inside;
      slots.release();
    });
    EXPECT_LE(most, 3);
    EXPECT_GE(most, 1);
    EXPECT_TRUE(slots.try_acquire() && slots.try_acquire() && slots.try_acquire());
    EXPECT_FALSE(slots.try_acquire());
    EXPECT_FALSE(slots.try_acquire_until(clock::now() + 2ms));
    slots.release(2);
    EXPECT_TRUE(slots.try_acquire_until(clock::now() + 2ms));
    EXPECT_TRUE(slots.try_acquire());
    EXPECT_FALSE(slots.try_acquire());
  });
}

TEST(FiberSemaphore, IsReleasedByAThread) {
  semaphore signal(0);
  std::thread outside([&] {
    for (int i = 0; i < 100; ++i) {
      std::this_thread::sleep_for(50us);
      signal.release();
    }
  });
  run({.workers = 2}, [&] {
    for (int i = 0; i < 100; ++i) signal.acquire();
  });
  outside.join();
  EXPECT_FALSE(signal.try_acquire());
}

TEST(FiberChannel, KeepsTheOrderAndTheBound) {
  for (std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{64}}) {
    run({.workers = 2}, [&] {
      channel<int> pipe(capacity);
      fiber sender([&] {
        for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pipe.send(i));
        pipe.close();
        EXPECT_FALSE(pipe.send(1000));
      });
      int expected = 0;
      while (std::optional<int> value = pipe.receive()) ASSERT_EQ(*value, expected++);
      EXPECT_EQ(expected, 1000);
      sender.join();
    });
  }
}

TEST(FiberChannel, ManySendersManyReceiversAndAThread) {
  channel<std::uint64_t> pipe(8);
  std::atomic<std::uint64_t> sum{0};
  std::thread outside([&] {
    while (auto value = pipe.receive()) sum += *value;
  });
  run({.workers = 3}, [&] {
    std::vector<fiber> senders, receivers;
    for (std::uint64_t s = 0; s < 5; ++s)
      senders.emplace_back([&, s] {
        for (std::uint64_t i = 0; i < 500; ++i) pipe.send(s * 500 + i);
      });
    for (int r = 0; r < 3; ++r)
      receivers.emplace_back([&] {
        while (auto value = pipe.receive()) sum += *value;
      });
    join_all(senders);
    pipe.close();
    join_all(receivers);
  });
  outside.join();
  EXPECT_EQ(sum, 2499u * 2500 / 2);
}

TEST(FiberChannel, ClosingFreesThoseWhoWait) {
  run({.workers = 2}, [] {
    channel<int> pipe(1);
    std::vector<fiber> fibers;
    for (int i = 0; i < 4; ++i) fibers.emplace_back([&] { EXPECT_FALSE(pipe.receive()); });
    this_fiber::sleep_for(1ms);
    pipe.close();
    join_all(fibers);
  });
}

}  // namespace
