#include "far/arena.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "far/test_support.hpp"

namespace hinterland::far {
namespace {

Arena make_arena(std::uint64_t bytes) {
  auto arena = Arena::create(bytes);
  EXPECT_TRUE(arena);
  return std::move(*arena);
}

TEST(Arena, EveryLengthFillsItsBlocksAndNothingElse) {
  for (std::uint32_t length : {1u, 128u, 129u, 192u, 1000u, 2047u, 2048u, 3328u, 4032u, 4033u, 4096u}) {
    Arena arena = make_arena(4 * Arena::kBlockBytes);
    Arena::Cursor cursor;
    std::map<std::uint64_t, std::uint32_t> taken;
    while (auto offset = arena.allocate(length, cursor)) {
      ASSERT_LE(*offset % Arena::kBlockBytes + length, Arena::kBlockBytes);
      ASSERT_TRUE(taken.emplace(*offset, length).second);
    }
    std::uint32_t rounded = std::max(128u, (length + 63) / 64 * 64);
    EXPECT_EQ(taken.size(), 4 * (Arena::kBlockBytes / rounded)) << length;
    std::uint64_t end = 0;
    for (auto [offset, size] : taken) {
      EXPECT_GE(offset, end) << "objects overlap";
      end = offset + size;
    }
    for (auto [offset, size] : taken) arena.free(offset, size);
    EXPECT_TRUE(arena.allocate(4096, cursor)) << "blocks change their class when they were empty";
  }
}

TEST(Arena, MemoryGoesBackWhenBlocksAreEmpty) {
  Arena arena = make_arena(1000 * Arena::kBlockBytes);
  Arena::Cursor cursor;
  std::vector<std::uint64_t> offsets;
  while (auto offset = arena.allocate(2000, cursor)) {
    std::memset(arena.data(*offset), 1, 2000);
    offsets.push_back(*offset);
  }
  EXPECT_EQ(arena.stored_bytes(), 1000u * Arena::kBlockBytes);
  for (std::uint64_t offset : offsets) arena.free(offset, 2000);
  EXPECT_LE(arena.stored_bytes(), 32u * Arena::kBlockBytes) << "a few empty blocks stay ready";
  int nonzero = 0;
  for (std::uint64_t offset : offsets) nonzero += *arena.data(offset) != std::byte{0};
  EXPECT_LE(nonzero, 33 * 32) << "the others read as zeros: their memory is gone";
}

TEST(Arena, AFreedObjectIsUsedAgainByAnotherCursor) {
  Arena arena = make_arena(2 * Arena::kBlockBytes);
  Arena::Cursor first, second;
  std::vector<std::uint64_t> offsets;
  while (auto offset = arena.allocate(1024, first)) offsets.push_back(*offset);
  arena.free(offsets[5], 1024);
  auto again = arena.allocate(1024, second);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, offsets[5]);
  EXPECT_FALSE(arena.allocate(1024, first));
}

TEST(Arena, RoomOfAnEndedCursorIsFound) {
  Arena arena = make_arena(Arena::kBlockBytes);
  Arena::Cursor first, second;
  ASSERT_TRUE(arena.allocate(500, first));
  EXPECT_FALSE(arena.allocate(500, second)) << "the only block is the first cursor's";
  arena.give_up(first);
  EXPECT_TRUE(arena.allocate(500, second));
}

TEST(Arena, FreeingTwiceIsFound) {
  Arena arena = make_arena(4 * Arena::kBlockBytes);
  Arena::Cursor cursor;
  std::uint64_t one = *arena.allocate(500, cursor);
  ASSERT_TRUE(arena.allocate(500, cursor));
  arena.free(one, 500);
  EXPECT_DEATH(arena.free(one, 500), "does not hold");
}

TEST(Arena, ThreadsNeverShareAnObject) {
  Arena arena = make_arena(512 * Arena::kBlockBytes);
  std::uint64_t seed = testing::test_seed();
  std::atomic<int> damaged = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      struct Object {
        std::uint64_t offset;
        std::uint32_t length;
      };
      std::vector<Object> held;
      Arena::Cursor cursor;
      for (int step = 0; step < 5'000; ++step) {
        auto length = static_cast<std::uint32_t>(1 + random() % 4096);
        if (auto offset = arena.allocate(length, cursor)) {
          std::memset(arena.data(*offset), static_cast<int>(t), length);
          held.push_back({*offset, length});
        }
        while (held.size() > 300) {
          std::swap(held[random() % held.size()], held.back());
          Object object = held.back();
          held.pop_back();
          const std::byte* bytes = arena.data(object.offset);
          if (bytes[0] != std::byte(t) || std::memcmp(bytes, bytes + 1, object.length - 1) != 0) ++damaged;
          arena.free(object.offset, object.length);
        }
      }
      for (Object object : held) arena.free(object.offset, object.length);
      arena.give_up(cursor);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0) << "HINTERLAND_TEST_SEED=" << seed;
  EXPECT_LE(arena.stored_bytes(), 32u * Arena::kBlockBytes);
}

}  // namespace
}  // namespace hinterland::far
