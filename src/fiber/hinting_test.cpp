// Hints of fibers over a runtime of the test's own, in which pages arrive when the test says so.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "fiber/parking.hpp"
#include "hinterland/fiber.hpp"
#include "hinterland/hint.h"

namespace {

using namespace hl::fibers;
using namespace std::chrono_literals;

constexpr std::uintptr_t kBase = 0x7000'0000'0000, kPage = 4096, kPages = 64;
enum class Page : std::uint8_t { far, asked, at_the_door, there };

std::array<std::atomic<Page>, kPages> g_pages;
std::array<unsigned char, kPages> g_map;  // always "missing": each hint asks
std::atomic<int> g_blocking_hints{0}, g_begun{0};
std::atomic<std::thread::id> g_gatherer;

std::atomic<Page>& page_of(const void* address) {
  return g_pages[(reinterpret_cast<std::uintptr_t>(address) - kBase) / kPage];
}

void blocking_hint(const void*, std::size_t, std::int32_t, std::uint32_t) { ++g_blocking_hints; }

int begin(const void* address, std::size_t, std::int32_t, std::uint32_t) {
  ++g_begun;
  Page far = Page::far;
  page_of(address).compare_exchange_strong(far, Page::asked);
  return page_of(address) != Page::there;
}
int on_its_way(const void* address, std::size_t) { return page_of(address) != Page::there; }
int poll() {
  int any = 0;
  for (auto& page : g_pages) {
    Page come = Page::at_the_door;
    if (page.compare_exchange_strong(come, Page::there)) any = 1;
  }
  if (any != 0) g_gatherer = std::this_thread::get_id();
  return any;
}

// Asked anew each time: to the compiler, a function stays on one thread.
__attribute__((noinline)) std::thread::id this_thread_now() {
  asm volatile("" ::: "memory");
  return std::this_thread::get_id();
}

void* at(std::size_t page) { return reinterpret_cast<void*>(kBase + page * kPage); }
void arrive(std::size_t page) {
  Page asked = Page::asked;
  while (!g_pages[page].compare_exchange_weak(asked, Page::at_the_door))
    asked = Page::asked, std::this_thread::yield();
}

}  // namespace

// Where the preloaded library's would be.
struct hl_runtime hl_runtime = [] {
  struct hl_runtime runtime{};
  runtime.abi_version = 1;
  runtime.base = kBase;
  runtime.size = kPages * kPage;
  runtime.map = g_map.data();
  runtime.hint = blocking_hint;
  return runtime;
}();
const struct hl_parking hl_parking = {begin, on_its_way, poll, nullptr};

namespace {

class FiberHints : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto& page : g_pages) page = Page::far;
    g_blocking_hints = g_begun = 0;
  }
  void TearDown() override { EXPECT_EQ(hl_runtime.hint, blocking_hint); }  // as before, when no fiber is left
};

TEST_F(FiberHints, ParkTheFiberAndRunAnother) {
  run({.workers = 1}, [] {
    std::vector<int> order;
    fiber hinting([&] {
      order.push_back(1);
      hl_read(at(3));
      order.push_back(3);
    });
    fiber other([&] {
      order.push_back(2);
      arrive(3);
    });
    hinting.join();
    other.join();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  });
  EXPECT_EQ(g_blocking_hints, 0);
}

TEST_F(FiberHints, APageThatIsThereCostsNoSwitch) {
  g_pages[5] = Page::there;
  run({.workers = 1}, [] {
    bool other_ran = false;
    fiber other([&] { other_ran = true; });
    hl_read(at(5));
    EXPECT_FALSE(other_ran);
    other.join();
  });
  EXPECT_EQ(g_begun, 1);
}

TEST_F(FiberHints, APrefetchDoesNotPark) {
  run({.workers = 1}, [] {
    bool other_ran = false;
    fiber other([&] { other_ran = true; });
    hl_prefetch(at(5), 1);
    EXPECT_FALSE(other_ran);
    other.join();
  });
  EXPECT_EQ(g_pages[5], Page::asked);
}

TEST_F(FiberHints, OfOrdinaryThreadsBlockThatThread) {
  run({.workers = 2}, [] {
    std::thread([] { hl_read(at(1)); }).join();
    EXPECT_EQ(g_blocking_hints, 1);
    EXPECT_EQ(g_begun, 0);
  });
  hl_read(at(1));
  EXPECT_EQ(g_blocking_hints, 2);
}

TEST_F(FiberHints, BlockTheThreadWhereTheyAreToldTo) {
  run({.workers = 1, .hints_park = false}, [] {
    bool other_ran = false;
    fiber other([&] { other_ran = true; });
    hl_read(at(5));
    EXPECT_FALSE(other_ran);
    other.join();
  });
  EXPECT_EQ(g_blocking_hints, 1);
  EXPECT_EQ(g_begun, 0);
}

// Eden's first case: the core that asked computes for long, and another takes the arrival from it.
TEST_F(FiberHints, ArrivalsOfABusyWorkerAreTakenByAnIdleOne) {
  run({.workers = 2, .spin = 1us}, [] {
    std::atomic<bool> arrived{false};
    std::atomic<std::thread::id> went_on{};
    fiber hinting([&] {
      hl_read(at(7));
      went_on = this_thread_now();
      arrived = true;
    });
    while (g_begun == 0) this_fiber::yield();
    std::thread::id busy = this_thread_now();
    std::this_thread::sleep_for(5ms);  // the other worker goes to sleep
    arrive(7);
    auto until = clock::now() + 100s;
    while (!arrived && clock::now() < until) {
    }  // never yields
    ASSERT_TRUE(arrived);
    EXPECT_NE(went_on.load(), busy);
    EXPECT_NE(g_gatherer.load(), busy);
    hinting.join();
  });
}

TEST_F(FiberHints, AreWokenInWhateverOrderPagesArrive) {
  run({.workers = 2}, [] {
    std::array<std::atomic<bool>, kPages> done{};
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < kPages; ++i)
      fibers.emplace_back([&, i] {
        hl_read(at(i));
        done[i] = true;
      });
    for (std::size_t i = kPages; i-- > 0;) {
      while (g_pages[i] != Page::asked) this_fiber::yield();
      arrive(i);
      auto until = clock::now() + 100s;
      while (!done[i] && clock::now() < until) this_fiber::yield();
      ASSERT_TRUE(done[i]) << i;
      EXPECT_FALSE(i > 0 && done[i - 1]);
    }
    for (fiber& each : fibers) each.join();
  });
}

// A page that never comes keeps its fiber, and nobody else.
TEST_F(FiberHints, OneThatStaysAwayHoldsUpNobody) {
  run({.workers = 2}, [] {
    fiber stuck([] { hl_read(at(0)); });
    while (g_pages[0] != Page::asked) this_fiber::yield();
    std::atomic<bool> over{false};
    fiber device([&] {
      while (!over) {
        for (std::size_t i = 1; i < kPages; ++i)
          if (Page asked = Page::asked; g_pages[i].compare_exchange_strong(asked, Page::at_the_door)) {
          }
        this_fiber::yield();
      }
    });
    parallel_for(1, kPages, [](std::size_t i) { hl_read(at(i)); });
    over = true;
    device.join();
    arrive(0);
    stuck.join();
  });
}

}  // namespace
