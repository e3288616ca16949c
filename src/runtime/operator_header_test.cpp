// operator.hpp and table.hpp without a runtime: what is computed, and how arrays are cut, whoever computes it.
#include "hinterland/operator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

#include "hinterland/table.hpp"

namespace {

using hl::far::nothing;

// What each piece was.
struct Seen {
  std::uint64_t word, bytes;
  std::uint64_t first_page, last_page;
};
void look(const void*, std::uint64_t word, const void* piece, std::size_t bytes, void* result) {
  const auto address = reinterpret_cast<std::uintptr_t>(piece);
  const Seen seen{word, bytes, address / 4096, (address + bytes - 1) / 4096};
  std::memcpy(result, &seen, sizeof seen);
}

template <std::size_t Bytes>
struct Element {
  unsigned char bytes[Bytes];
};

template <std::size_t Bytes>
void check_pieces(std::size_t count, std::size_t shift) {
  constexpr hl_operator which = {HL_OPERATOR_ABI_VERSION, 1, "look", Bytes, 0, sizeof(Seen), 0, look};
  std::vector<Element<Bytes>> elements(count + 1);
  const std::span<const Element<Bytes>> part(elements.data() + std::min<std::size_t>(shift, 1), count);
  std::size_t next = 0, last_page = 0;
  hl::far::apply<Seen>(which, nothing{}, part, [&](std::size_t first, std::size_t n, const Seen& seen) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(seen.word, first);
    EXPECT_EQ(seen.bytes, n * Bytes);
    if (seen.first_page != seen.last_page) {
      EXPECT_EQ(n, 1u) << "only one that lies on two pages";
    }
    EXPECT_GE(seen.first_page, last_page);
    last_page = seen.first_page;
    next += n;
  });
  EXPECT_EQ(next, count);
}

TEST(OperatorHeader, CutsAtPagesAndLeavesNothingOut) {
  for (std::size_t count : {0u, 1u, 2u, 700u, 9000u})
    for (std::size_t shift : {0u, 1u}) {
      check_pieces<1>(count, shift);
      check_pieces<8>(count, shift);
      check_pieces<24>(count, shift);
      check_pieces<1000>(count, shift);
      check_pieces<4096>(count, shift);
    }
}

// A result begins as zeros, whatever the one before left.
void add_one(const void* argument, std::uint64_t, const void*, std::size_t, void* result) {
  std::uint64_t made, more;
  std::memcpy(&made, result, sizeof made);
  std::memcpy(&more, argument, sizeof more);
  made += more;
  std::memcpy(result, &made, sizeof made);
}

TEST(OperatorHeader, ResultsBeginAsZerosAndArgumentsArrive) {
  constexpr hl_operator which = {HL_OPERATOR_ABI_VERSION, 1, "add", 1, 8, 8, 0, add_one};
  const std::vector<unsigned char> bytes(100'000);
  std::vector<hl_piece> pieces;
  for (std::size_t i = 0; i < 3000; ++i) pieces.push_back({&bytes[i * 30], 1 + i % 500, 0});
  std::vector<std::uint64_t> results(pieces.size(), 99);
  hl::far::apply_at<std::uint64_t>(which, std::uint64_t{7}, pieces, std::span(results));
  EXPECT_EQ(results, std::vector<std::uint64_t>(pieces.size(), 7));
}

struct Account {
  std::uint64_t number;
  std::uint32_t group, rest;  // no padding: bytes are compared
};

template <typename Value>
void check_table(std::size_t room, std::size_t keys, std::uint64_t spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  hl::far::table<Value> table(room);
  std::unordered_map<std::uint64_t, Value> right;
  for (std::size_t i = 0; i < keys; ++i) {
    const std::uint64_t key = random() % spread;
    Value value;
    std::memset(&value, static_cast<int>(random() % 256), sizeof value);
    if (right.size() == room && !right.contains(key)) {
      EXPECT_THROW(table.insert_or_assign(key, value), std::length_error);
      continue;
    }
    EXPECT_EQ(table.insert_or_assign(key, value), right.insert_or_assign(key, value).second);
  }
  EXPECT_EQ(table.size(), right.size());
  // And many at a time, of which some are there, and some are the same.
  std::vector<std::uint64_t> more;
  std::vector<Value> values;
  for (const auto& [key, value] : right)
    for (int times = static_cast<int>(random() % 3); times > 0; --times) {
      more.push_back(key);
      std::memset(&values.emplace_back(), static_cast<int>(random() % 256), sizeof(Value));
    }
  table.insert_or_assign(more, [&values](std::size_t i) { return values[i]; });
  for (std::size_t i = 0; i < more.size(); ++i) right.insert_or_assign(more[i], values[i]);
  EXPECT_EQ(table.size(), right.size());
  std::vector<std::uint64_t> wanted(3 * keys + 5);
  for (std::uint64_t& key : wanted) key = random() % 50 == 0 ? HL_TABLE_NO_KEY : random() % (2 * spread);
  std::vector<std::optional<Value>> found(wanted.size(), Value{});
  table.find(wanted, found);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto there = right.find(wanted[i]);
    const auto alone = table.find(wanted[i]);
    ASSERT_EQ(found[i].has_value(), there != right.end());
    ASSERT_EQ(alone.has_value(), there != right.end());
    if (there == right.end()) continue;
    ASSERT_EQ(std::memcmp(&*found[i], &there->second, sizeof(Value)), 0);
    ASSERT_EQ(std::memcmp(&*alone, &there->second, sizeof(Value)), 0);
  }
}

TEST(Table, FindsWhatAMapFinds) {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    check_table<std::uint64_t>(0, 10, 5, seed);
    check_table<std::uint64_t>(1, 10, 5, seed);
    check_table<std::uint64_t>(3, 10, 5, seed);
    check_table<Account>(6000, 8000, 20'000, seed);
    check_table<Element<56>>(6000, 6000, 8000, seed);
    check_table<char>(9000, 9000, 1'000'000, seed);
  }
}

// As full as may be: searches go over several pages, and around the end.
TEST(Table, SearchesGoOnBehindTheirPage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kSeeds = 1, kKeys = 4000;  // whoever finds no room throws, which takes them a millisecond
#else
  constexpr std::uint64_t kSeeds = 3, kKeys = 20'000;
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    check_table<Element<56>>(3 << 10, kKeys, std::uint64_t{1} << 40, seed);
}

TEST(Table, BadInputIsSaid) {
  hl::far::table<int> table(2);
  EXPECT_THROW(table.insert_or_assign(HL_TABLE_NO_KEY, 1), std::invalid_argument);
  EXPECT_FALSE(table.find(HL_TABLE_NO_KEY));
  std::vector<std::uint64_t> keys = {1, 2};
  std::vector<std::optional<int>> out(1);
  EXPECT_THROW(table.find(keys, out), std::invalid_argument);
  keys = {1, 2, 1, 3};
  EXPECT_THROW(table.insert_or_assign(keys, [](std::size_t i) { return static_cast<int>(i); }), std::length_error);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_THROW(hl::far::table<int>(SIZE_MAX / 4), std::bad_alloc);
}

// What anybody may send to the server's copy of it.
TEST(Table, TheLookupLooksAtNothingBehindItsPiece) {
  std::vector<unsigned char> piece(64, 0xfe);
  for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{15}, std::uint64_t{65}, UINT64_MAX,
                             std::uint64_t{17}, std::uint64_t{64}}) {
    hl_table_found found{};
    for (std::size_t bytes : {0u, 8u, 63u, 64u}) hl_table_lookup(&size, 5, piece.data(), bytes, &found);
    EXPECT_EQ(found.state, HL_TABLE_BEYOND) << size;
  }
}

}  // namespace
