#include "preload/local_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "preload/heap_gate.hpp"
#include "preload/jemalloc.hpp"

namespace hinterland {
namespace {

bool is_aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

TEST(LocalHeap, BlocksAreInTheRangeAndAligned) {
  for (std::size_t size : {0ul, 1ul, 8ul, 9ul, 100ul, 5000ul, 1ul << 20, 100ul << 20}) {
    void* block = local_heap::allocate(size);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(local_heap::owns(block) && is_aligned(block, 16));
    EXPECT_GE(local_heap::usable_size(block), size);
    std::memset(block, 1, size);
    local_heap::release(block);
    block = local_heap::allocate(size, 1 << 16, true);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, 1 << 16));
    for (std::size_t i = 0; i < size; i += 97) ASSERT_EQ(static_cast<char*>(block)[i], 0);
    local_heap::release(block);
  }
  EXPECT_EQ(local_heap::allocate(std::size_t{1} << 60), nullptr);
  int on_stack;
  EXPECT_FALSE(local_heap::owns(&on_stack) || local_heap::owns(nullptr));
}

TEST(LocalHeap, ResizeKeepsTheBytes) {
  auto* block = static_cast<char*>(local_heap::allocate(10));
  std::memset(block, 5, 10);
  for (std::size_t size = 10; size < 10'000'000; size *= 3) {
    block = static_cast<char*>(local_heap::resize(block, size));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(block[9], 5);
  }
  EXPECT_EQ(local_heap::resize(block, std::size_t{1} << 60), nullptr);
  EXPECT_EQ(block[9], 5);
  local_heap::release(block);
}

TEST(HeapGate, ClosedMeansTheEmergencyRegion) {
  auto* before = static_cast<char*>(local_heap::allocate(1000));
  std::memset(before, 6, 1000);
  heap_gate::close();
  void* small = local_heap::allocate(100);
  void* aligned = local_heap::allocate(100, 4096, true);
  auto* moved = static_cast<char*>(local_heap::resize(before, 3000));
  void* freed = local_heap::allocate(10);
  local_heap::release(freed);
  void* too_large = local_heap::allocate(std::size_t{1} << 30);
  heap_gate::open_in_parent();

  EXPECT_TRUE(heap_gate::is_emergency(small) && heap_gate::is_emergency(aligned) && heap_gate::is_emergency(moved));
  EXPECT_TRUE(local_heap::owns(small) && is_aligned(small, 16) && is_aligned(aligned, 4096));
  EXPECT_EQ(local_heap::usable_size(aligned), 100u);
  EXPECT_EQ(moved[999], 6);
  EXPECT_EQ(too_large, nullptr);
  void* after = local_heap::resize(moved, 5000);  // leaves the region
  EXPECT_FALSE(heap_gate::is_emergency(after));
  EXPECT_EQ(static_cast<char*>(after)[999], 6);
  local_heap::release(small);
  local_heap::release(aligned);
  local_heap::release(after);
}

TEST(HeapGate, AllocatingThreadsPassManyForks) {
  local_heap::release(local_heap::allocate(1));  // a process has its heap long before it forks
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&stop] {
      while (!stop.load()) {
        void* block = local_heap::allocate(200);
        std::memset(block, 1, 200);
        local_heap::release(block);
      }
    });
  const JemallocForkHandlers& handlers = jemalloc_fork_handlers();
  ASSERT_NE(handlers.prepare, nullptr);
  for (int i = 0; i < 200; ++i) {
    heap_gate::close();
    handlers.prepare();
    void* block = local_heap::allocate(50);  // jemalloc's locks are held by this thread
    EXPECT_NE(block, nullptr);
    handlers.parent();
    heap_gate::open_in_parent();
    local_heap::release(block);
  }
  stop.store(true);
  for (auto& thread : threads) thread.join();
}

// A program may fork as often as it likes: what its threads take meanwhile comes back.
TEST(HeapGate, TheEmergencyRegionIsNotUsedUp) {
  local_heap::release(local_heap::allocate(1));  // a process has its heap long before it forks
  for (int fork = 0; fork < 10'000; ++fork) {
    heap_gate::close();
    auto* first = static_cast<char*>(local_heap::allocate(10'000, 16, true));
    auto* second = static_cast<char*>(local_heap::allocate(10'000, 64, true));
    ASSERT_TRUE(first != nullptr && second != nullptr) << fork;
    ASSERT_TRUE(heap_gate::is_emergency(first));
    for (char* block : {first, second}) {
      ASSERT_EQ(std::count(block, block + 10'000, 0), 10'000) << fork;
      std::memset(block, 7, 10'000);
    }
    local_heap::release(first);
    heap_gate::open_in_parent();
    local_heap::release(second);
  }
}

}  // namespace
}  // namespace hinterland
