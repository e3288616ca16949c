// Objects of known content in the far log, for the tests of the log alone.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "object/far_writer.hpp"

namespace hinterland::object::testing {

struct Placed {
  Location location;
  std::uint32_t units;
  std::uint64_t id;  // its content follows from it
};

inline std::vector<std::uint64_t> content_of(std::uint64_t id, std::uint32_t units) {
  std::vector<std::uint64_t> words(units);
  for (std::uint32_t i = 0; i < units; ++i) words[i] = (id + 1) * 0x9e3779b97f4a7c15 + i;
  return words;
}

// Writes the block out first where that is full.
inline Placed place(FarWriter& writer, std::uint64_t id, std::uint32_t units) {
  const auto words = content_of(id, units);
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  Location location = writer.place(bytes, units);
  if (location == 0) {
    EXPECT_TRUE(writer.full());
    EXPECT_EQ(writer.flush(), 0u);
    location = writer.place(bytes, units);
  }
  EXPECT_NE(location, 0u);
  return {location, units, id};
}

}  // namespace hinterland::object::testing
