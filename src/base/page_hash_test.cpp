#include "base/page_hash.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "base/units.hpp"

namespace hinterland {
namespace {

std::vector<unsigned char> random_bytes(std::size_t bytes) {
  std::mt19937 random(7);
  std::vector<unsigned char> out(bytes);
  for (unsigned char& each : out) each = static_cast<unsigned char>(random());
  return out;
}

// Checksums are kept on disks and shared by processes: what one of the two ways wrote the other one must accept.
TEST(PageHash, IsTheSameOnEveryProcessor) {
  std::vector<unsigned char> bytes = random_bytes(4 * kPageSize);
  for (std::size_t at = 0; at < 2 * kPageSize; at += 97) {
    std::uint64_t plain = page_hash_plain(bytes.data() + at);
    EXPECT_EQ(page_hash(bytes.data() + at), plain);
    if (!has_wide_page_hash()) continue;
    EXPECT_EQ(page_hash_wide(bytes.data() + at), plain) << "at " << at;
  }
}

// Of zeros: the value that files written before must be read with.
TEST(PageHash, StaysAsItWas) {
  std::vector<unsigned char> zeros(kPageSize, 0);
  EXPECT_EQ(page_hash(zeros.data()), 0x93d76fe148c689bau);
}

TEST(PageHash, SeesEachBit) {
  std::vector<unsigned char> bytes = random_bytes(kPageSize);
  std::set<std::uint64_t> seen{page_hash(bytes.data())};
  for (std::size_t at = 0; at < kPageSize; ++at) {
    bytes[at] ^= static_cast<unsigned char>(1u << (at % 8));
    EXPECT_TRUE(seen.insert(page_hash(bytes.data())).second) << "byte " << at;
    bytes[at] ^= static_cast<unsigned char>(1u << (at % 8));
  }
}

}  // namespace
}  // namespace hinterland
