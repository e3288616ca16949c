// Workers that sleep are woken in time, also by what happens at the worst moment. The moments are made: the clock and
// the wait for events are the test's own.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "hinterland/fiber.hpp"

namespace {

using namespace hl::fibers;
using namespace std::chrono_literals;

std::atomic<bool> g_stop_at_the_clock{false};  // who reads it next waits until g_go
std::atomic<bool> g_stopped{false}, g_go{false};

std::atomic<bool> g_long_waits_are_endless{false};  // waits for events of half a millisecond and more
std::atomic<int> g_in_long_wait{0};

}  // namespace

extern "C" int clock_gettime(clockid_t which, timespec* out) noexcept {
  if (g_stop_at_the_clock.load() && g_stop_at_the_clock.exchange(false)) {
    g_stopped = true;
    while (!g_go) std::this_thread::yield();
  }
  return static_cast<int>(syscall(SYS_clock_gettime, which, out));
}

extern "C" int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout,
                            const sigset_t* signals) {
  bool is_long = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_nsec >= 500'000;
  if (is_long && g_long_waits_are_endless) timeout = nullptr;
  g_in_long_wait += is_long ? 1 : 0;
  auto found = syscall(SYS_epoll_pwait2, epoll, events, most, timeout, signals, _NSIG / 8);
  g_in_long_wait -= is_long ? 1 : 0;
  return static_cast<int>(found);
}

namespace {

// Of what takes microseconds.
bool comes_true(auto&& condition, std::chrono::seconds limit) {
  for (auto until = std::chrono::steady_clock::now() + limit; !condition(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

// One worker waits for events, for longer than the deadline that a fiber of the other sets before that one sleeps,
// too.
bool an_earlier_deadline_is_heard_of() {
  semaphore rescue(0);
  std::atomic<bool> done{false};
  bool in_time = false;
  std::thread outside([&] {
    in_time = comes_true([&] { return done.load(); }, 2s);
    rescue.release();
  });
  run({.workers = 2, .spin = 0us}, [&] {
    fiber waits([&] { rescue.acquire(); });
    g_long_waits_are_endless = true;
    while (g_in_long_wait == 0) this_fiber::yield();
    this_fiber::sleep_for(100us);
    done = true;
    g_long_waits_are_endless = false;
    waits.join();
  });
  outside.join();
  return in_time;
}

TEST(SleepingWorkers, HearOfEarlierDeadlines) {
  // Where this thread has no CPU for a millisecond, the deadline is not the earlier one, and then the wait that the
  // test made endless shows.
  bool heard = false;
  for (int i = 0; i < 60 && !heard; ++i) heard = an_earlier_deadline_is_heard_of();
  EXPECT_TRUE(heard) << "a fiber slept for longer than it wanted";
}

// A thread makes a fiber ready when the only worker has looked everywhere, and is not asleep yet: nobody can be
// woken.
TEST(SleepingWorkers, LookOnceMoreBeforeTheySleep) {
  semaphore wanted(0), rescue(0);
  std::atomic<bool> done{false};
  bool in_time = false;
  std::thread outside([&] {
    while (!g_stopped) std::this_thread::yield();
    wanted.release();
    g_go = true;
    in_time = comes_true([&] { return done.load(); }, 100s);
    rescue.release();
  });
  run({.workers = 1, .spin = 0us}, [&] {
    fiber waits([&] { rescue.acquire(); });
    this_fiber::yield();
    g_stop_at_the_clock = true;  // read after the last look for work
    wanted.acquire();
    done = true;
    waits.join();
  });
  outside.join();
  EXPECT_TRUE(in_time) << "a fiber that was made ready was not run";
}

}  // namespace
