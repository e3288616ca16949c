// Fibers as such: beginning and end, exceptions, yielding, stacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"

namespace {

using namespace hl::fibers;
using namespace std::chrono_literals;

TEST(Fibers, RunTheMainFunctionAndReturn) {
  bool ran = false;
  run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(Fibers, RunThrowsWhatMainThrew) {
  EXPECT_THROW(run([] { throw std::out_of_range("main"); }), std::out_of_range);
}

TEST(Fibers, RunWaitsForDetachedFibers) {
  for (unsigned workers : {1u, 3u}) {
    std::atomic<int> ended{0};
    run({.workers = workers}, [&] {
      for (int i = 0; i < 100; ++i)
        fiber([&] {
          this_fiber::yield();
          ++ended;
        }).detach();
    });
    EXPECT_EQ(ended, 100);
  }
}

TEST(Fibers, JoinWaitsAndThrowsWhatTheFiberThrew) {
  run({.workers = 2}, [] {
    int value = 0;
    fiber good([&] {
      this_fiber::sleep_for(1ms);
      value = 7;
    });
    good.join();
    EXPECT_EQ(value, 7);
    EXPECT_FALSE(good.joinable());
    fiber bad([] { throw std::runtime_error("bad"); });
    EXPECT_THROW(bad.join(), std::runtime_error);
  });
}

TEST(Fibers, JoinIsRefusedWhereItWouldNeverReturn) {
  run({.workers = 1}, [] {
    fiber empty;
    EXPECT_THROW(empty.join(), std::system_error);
    fiber* self = nullptr;
    fiber loop([&] { EXPECT_THROW(self->join(), std::system_error); });
    fiber kept = std::move(loop);
    self = &kept;
    // join() gives the handle up before it looks: nothing may be joined twice. So it ends detached.
    this_fiber::yield();
    EXPECT_FALSE(kept.joinable());
  });
}

TEST(Fibers, AreOnlyStartedByFibers) {
  EXPECT_THROW(fiber([] {}), std::system_error);
  run([] { EXPECT_THROW(run([] {}), std::system_error); });
}

TEST(Fibers, CallablesAreMovedAndDestroyedOnce) {
  auto count = std::make_shared<int>(0);
  run({.workers = 2}, [&] {
    std::vector<fiber> fibers;
    for (int i = 0; i < 50; ++i)
      fibers.emplace_back([count, owned = std::make_unique<int>(i)] { ASSERT_GE(*owned, 0); });
    for (fiber& each : fibers) each.join();
  });
  EXPECT_EQ(count.use_count(), 1);
}

TEST(Fibers, LargeCallablesAreRefused) {
  run({.workers = 1, .stack_bytes = 1 << 20}, [] {
    std::array<char, 40000> large{};
    EXPECT_THROW(fiber([large] { static_cast<void>(large); }, {.stack_bytes = 64 << 10}), std::length_error);
    fiber fits([large] { static_cast<void>(large); }, {.stack_bytes = 256 << 10});
    fits.join();
  });
}

TEST(Fibers, YieldLetsAllOthersRunInTurn) {
  run({.workers = 1}, [] {
    std::string order;
    fiber a([&] {
      for (int i = 0; i < 3; ++i) order += 'a', this_fiber::yield();
    });
    fiber b([&] {
      for (int i = 0; i < 3; ++i) order += 'b', this_fiber::yield();
    });
    a.join();
    b.join();
    EXPECT_EQ(order, "ababab");
  });
}

TEST(Fibers, MoreReadyOnesThanAQueueHolds) {
  for (unsigned workers : {1u, 2u}) {
    std::atomic<int> ran{0};
    run({.workers = workers}, [&] {
      std::vector<fiber> fibers;
      for (int i = 0; i < 2000; ++i)
        fibers.emplace_back(
            [&] {
              this_fiber::yield();
              ++ran;
            },
            fiber_options{.stack_bytes = 16 << 10});
      for (fiber& each : fibers) each.join();
    });
    EXPECT_EQ(ran, 2000);
  }
}

TEST(Fibers, HaveNamesAndNumbers) {
  EXPECT_STREQ(this_fiber::name(), "");
  EXPECT_EQ(this_fiber::id(), 0u);
  run({.workers = 1}, [] {
    EXPECT_STREQ(this_fiber::name(), "main");
    std::uint64_t main_id = this_fiber::id();
    fiber named(
        [&] {
          EXPECT_STREQ(this_fiber::name(), "0123456789012345678901234567890");
          EXPECT_GT(this_fiber::id(), main_id);
        },
        {.name = "012345678901234567890123456789012345"});
    named.join();
  });
}

TEST(Fibers, AreStolenByIdleWorkers) {
  run({.workers = 2}, [] {
    std::atomic<bool> other{false};
    std::thread::id here = std::this_thread::get_id();
    fiber stolen([&] { other = std::this_thread::get_id() != here; });
    auto until = clock::now() + 100s;
    while (!other && clock::now() < until) {
    }  // never yields: somebody else has to come
    EXPECT_TRUE(other);
    stolen.join();
  });
}

TEST(Fibers, SleepAtLeastAsLongAsAsked) {
  run({.workers = 2}, [] {
    auto begin = clock::now();
    std::vector<fiber> fibers;
    for (int ms : {30, 10, 20})
      fibers.emplace_back([begin, ms] {
        this_fiber::sleep_until(begin + std::chrono::milliseconds(ms));
        EXPECT_GE(clock::now() - begin, std::chrono::milliseconds(ms));
      });
    for (fiber& each : fibers) each.join();
    this_fiber::sleep_until(clock::time_point::min());  // long past
  });
}

TEST(Fibers, ASleepEndsWhileEverybodyElseComputes) {
  run({.workers = 2}, [] {
    std::atomic<bool> slept{false};
    fiber sleeper([&] {
      this_fiber::sleep_for(2ms);
      slept = true;
    });
    this_fiber::yield();
    auto until = clock::now() + 100s;
    while (!slept && clock::now() < until) {
    }
    EXPECT_TRUE(slept);
    sleeper.join();
  });
}

// A catch block that is left by a switch finds its own exception when it goes on, on whatever thread that is.
TEST(Fibers, KeepTheExceptionsThatTheyHandle) {
  run({.workers = 3}, [] {
    std::vector<fiber> fibers;
    for (int i = 0; i < 40; ++i)
      fibers.emplace_back([i] {
        for (int round = 0; round < 20; ++round) {
          try {
            try {
              throw i;
            } catch (int) {
              this_fiber::yield();
              if (round % 4 == 0) this_fiber::sleep_for(20us);
              EXPECT_EQ(std::uncaught_exceptions(), 0);
              throw;
            }
          } catch (int mine) {
            EXPECT_EQ(mine, i);
          }
        }
      });
    for (fiber& each : fibers) each.join();
  });
}

TEST(Fibers, SeveralRunsAtATime) {
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      run({.workers = 2}, [&] {
        std::vector<fiber> fibers;
        for (int n = 0; n < 50; ++n) fibers.emplace_back([&] { this_fiber::yield(), ++done; });
        for (fiber& each : fibers) each.join();
      });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 150);
}

TEST(Fibers, ParallelForCallsEachOnce) {
  run({.workers = 3}, [] {
    for (std::size_t grain : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
      std::vector<std::atomic<int>> calls(1000);
      parallel_for(10, 990, [&](std::size_t i) { ++calls[i]; }, grain);
      for (std::size_t i = 0; i < calls.size(); ++i) ASSERT_EQ(calls[i], i >= 10 && i < 990 ? 1 : 0) << i;
    }
    parallel_for(5, 5, [](std::size_t) { FAIL(); });
    parallel_for(~std::size_t{0} - 3, ~std::size_t{0}, [](std::size_t) {}, 2);  // no overflow at the end of numbers
  });
}

TEST(Fibers, ParallelForThrowsTheFirstException) {
  run({.workers = 2}, [] {
    std::atomic<int> calls{0};
    auto body = [&](std::size_t i) {
      ++calls;
      if (i == 3) throw std::runtime_error("three");
    };
    EXPECT_THROW(parallel_for(0, 100'000, body), std::runtime_error);
    EXPECT_LT(calls, 100'000);
  });
}

// --- what ends the program. Sanitizers have handlers, stacks and messages of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Opaque to the compiler, which would refuse to go there.
volatile int* touched_at(std::uintptr_t address) {
  asm volatile("" : "+r"(address));
  return reinterpret_cast<volatile int*>(address);
}
__attribute__((noinline)) int sink(volatile char* memory) { return memory[0]; }
// GCC would make a loop of it.
__attribute__((noinline, optimize("O0"))) int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? sink(frame) : recurse(depth - 1) + sink(frame);
}

TEST(FibersDeathTest, OverflowingAStackIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      run({.workers = 2}, [] { fiber([] { recurse(1 << 20); }, {.name = "deep", .stack_bytes = 32 << 10}).join(); }),
      testing::KilledBySignal(SIGSEGV), "fiber 2 'deep' has used up its stack of 32 KiB; give it more");
}

// The rest of the stack can be used to the end, and the neighbours do not notice.
TEST(Fibers, UseTheirWholeStack) {
  run({.workers = 1}, [] {
    for (int i = 0; i < 20; ++i) fiber([] { EXPECT_GE(recurse(80), -100000); }, {.stack_bytes = 64 << 10}).join();
  });
}

TEST(FibersDeathTest, OtherFaultsGoToTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run([] { *touched_at(8) = 1; }), testing::KilledBySignal(SIGSEGV), "^$");
  auto handled = [] {
    struct sigaction action{};
    action.sa_handler = [](int) { _exit(42); };
    sigaction(SIGSEGV, &action, nullptr);
    run([] { *touched_at(8) = 1; });
  };
  EXPECT_EXIT(handled(), testing::ExitedWithCode(42), "");
}

TEST(FibersDeathTest, ExceptionsOfDetachedFibersEndTheProgramWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto before = [] {
    run({.workers = 1}, [] { fiber([] { throw std::runtime_error("lost"); }, {.name = "lonely"}).detach(); });
  };
  EXPECT_EXIT(before(), testing::KilledBySignal(SIGABRT), "left the detached fiber 2 'lonely': lost");
  auto after = [] {
    run({.workers = 1}, [] {
      fiber late([] { throw 1; }, {.name = "late"});
      this_fiber::yield();
      late.detach();
    });
  };
  EXPECT_EXIT(after(), testing::KilledBySignal(SIGABRT), "left the detached fiber 2 'late', of a type");
}

TEST(FibersDeathTest, LosingAJoinableFiberEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run([] { fiber lost([] {}); }), testing::KilledBySignal(SIGABRT), "");
}

#endif

}  // namespace
