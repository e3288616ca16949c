// offload_scatter.hpp without a runtime: the same as loops. With one, see paging/pager_patch_test.cpp.
#include "hinterland/offload_scatter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace {

TEST(ScatterHeader, WritesWhatALoopWrites) {
  std::mt19937_64 random(3);
  for (std::size_t size : {1u, 5u, 1000u, 20'000u})
    for (std::size_t count : {0u, 1u, 300u, 5000u}) {
      std::vector<float> out(size, 0.5f), right = out, values(count);
      std::vector<std::size_t> indices(count);
      for (std::size_t i = 0; i < count; ++i) {
        indices[i] = random() % size;
        values[i] = static_cast<float>(random() % 1000);
        right[indices[i]] = values[i];
      }
      hl::far::scatter(values, indices, out);
      EXPECT_EQ(out, right);
    }
}

template <typename T>
void fills(T value) {
  for (std::size_t size : {0u, 1u, 1000u, 20'000u}) {
    std::vector<T> out(size + 2);
    hl::far::fill(std::span(out).subspan(1, size), value);
    EXPECT_EQ(out.front(), T{});
    EXPECT_EQ(out.back(), T{});
    for (std::size_t i = 1; i <= size; ++i) ASSERT_EQ(out[i], value) << i;
  }
}

TEST(ScatterHeader, FillsElementsOfAnySize) {
  fills<std::uint8_t>(7);
  fills<std::int16_t>(-7);
  fills<float>(0.25f);
  fills<double>(0.1);
  fills<std::array<char, 3>>({1, 2, 3});
  fills<std::array<std::uint64_t, 2>>({4, 5});
}

TEST(ScatterHeader, AValueThatLiesInWhatIsFilled) {
  std::vector<int> out(100, 1);
  out[50] = 9;
  hl::far::fill(out, out[50]);
  EXPECT_EQ(out, std::vector<int>(100, 9));
}

TEST(ScatterHeader, FilledWordsRepeatTheElement) {
  EXPECT_EQ(hl::far::detail::repeated<std::uint8_t>(0xab), 0xababababababababu);
  EXPECT_EQ(hl::far::detail::repeated<std::uint16_t>(0x1234), 0x1234123412341234u);
  EXPECT_EQ(hl::far::detail::repeated<std::uint32_t>(0x12345678), 0x1234567812345678u);
  EXPECT_EQ(hl::far::detail::repeated<std::uint64_t>(0x123456789abcdef0), 0x123456789abcdef0u);
}

}  // namespace
