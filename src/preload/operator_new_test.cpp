// The runtime's own operator new and delete, which this program is linked with, in all their forms: local memory,
// aligned as asked, null or the end of the process where there is none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "preload/local_heap.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kBytes = 3000;
constexpr std::align_val_t kWide{4096};
const std::size_t kTooMuch = std::size_t{1} << 60;

bool is_local(void* block, std::size_t alignment = 16) {
  std::memset(block, 1, kBytes);
  return local_heap::owns(block) && reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

// Calls the operators themselves: the compiler may leave a new and a delete expression out.
TEST(OperatorNew, EachFormGivesLocalMemory) {
  for (void* block : {operator new(kBytes), operator new[](kBytes), operator new(kBytes, std::nothrow),
                                                                    operator new[](kBytes, std::nothrow)}) {
    EXPECT_TRUE(is_local(block));
    void* volatile hidden = block;
    operator delete(hidden);
  }
  for (void* block :
       {operator new(kBytes, kWide), operator new[](kBytes, kWide), operator new(kBytes, kWide, std::nothrow),
                                                                    operator new[](kBytes, kWide, std::nothrow)}) {
    EXPECT_TRUE(is_local(block, 4096));
    void* volatile hidden = block;
    operator delete(hidden, kWide);
  }
}

// A block that was released is given out again: what does not come back was not released.
template <typename Release>
void expect_released(Release&& release) {
  std::size_t before = 0, again = 0;
  for (int i = 0; i < 2000; ++i) {
    void* block = operator new(1 << 20, kWide);
    auto address = reinterpret_cast<std::uintptr_t>(block);
    again += address == before;
    before = address;
    void* volatile hidden = block;  // the forms are mixed on purpose: one heap is behind all of them
    release(hidden);
  }
  EXPECT_GT(again, 1000u);
}

TEST(OperatorNew, EachFormOfDeleteReleases) {
  expect_released([](void* block) { operator delete(block); });
  expect_released([](void* block) { operator delete[](block); });
  expect_released([](void* block) { operator delete(block, std::size_t{1} << 20); });
  expect_released([](void* block) { operator delete[](block, std::size_t{1} << 20); });
  expect_released([](void* block) { operator delete(block, kWide); });
  expect_released([](void* block) { operator delete[](block, kWide); });
  expect_released([](void* block) { operator delete(block, std::size_t{1} << 20, kWide); });
  expect_released([](void* block) { operator delete[](block, std::size_t{1} << 20, kWide); });
  expect_released([](void* block) { operator delete(block, std::nothrow); });
  expect_released([](void* block) { operator delete[](block, std::nothrow); });
  expect_released([](void* block) { operator delete(block, kWide, std::nothrow); });
  expect_released([](void* block) { operator delete[](block, kWide, std::nothrow); });
  operator delete(nullptr);
  operator delete[](nullptr, kWide);
}

TEST(OperatorNew, WithoutMemoryNothrowIsNull) {
  EXPECT_EQ(operator new(kTooMuch, std::nothrow), nullptr);
  EXPECT_EQ(operator new[](kTooMuch, std::nothrow), nullptr);
  EXPECT_EQ(operator new(kTooMuch, kWide, std::nothrow), nullptr);
  EXPECT_EQ(operator new[](kTooMuch, kWide, std::nothrow), nullptr);
}

TEST(OperatorNewDeathTest, WithoutMemoryTheProcessEndsAndSaysWhy) {
  EXPECT_DEATH(static_cast<void>(operator new(kTooMuch)),
               "cannot allocate 1152921504606846976 bytes of local memory");
  EXPECT_DEATH(static_cast<void>(operator new[](kTooMuch, kWide)),
               "cannot allocate 1152921504606846976 bytes of local memory");
}

}  // namespace
}  // namespace hinterland
