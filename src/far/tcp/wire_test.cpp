#include "far/tcp/wire.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "far/tcp/wire_exercise.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::wire {
namespace {

Fault judge_request(const Header& header) {
  Header parsed;
  return parse_request(bytes_of(header), &parsed);
}
Fault judge_reply(const Header& header) {
  Header parsed;
  return parse_reply(bytes_of(header), &parsed);
}

TEST(Wire, NumbersAreLittleEndianAndUnaligned) {
  Header header = make_request(Type::write, 2, 0x0102030405060708);
  auto bytes = bytes_of(header);
  EXPECT_EQ(std::to_integer<int>(bytes[4]), 9) << "type, low byte first";
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 0x08);
  EXPECT_EQ(std::to_integer<int>(bytes[15]), 0x01);
  EXPECT_EQ(header.length, 2 * (8 + kPageSize));
}

TEST(Wire, EveryRequestAndItsReplyGoRoundTrip) {
  for (std::uint16_t type = 1; type <= 9; ++type) {
    bool counted = type >= 7;
    for (std::uint16_t count : {std::uint16_t{0}, std::uint16_t{1}, kPagesMax}) {
      if ((count != 0) != counted) continue;
      Header request = make_request(Type{type}, count, 77), parsed;
      ASSERT_EQ(parse_request(bytes_of(request), &parsed), Fault::none) << type;
      EXPECT_EQ(parsed.id, 77u);
      EXPECT_EQ(parsed.count, count);
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::ok)), &parsed), Fault::none) << type;
      EXPECT_EQ(parsed.id, 77u);
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::no_space)), &parsed), Fault::none) << type;
      EXPECT_EQ(parsed.length, 0u) << "refusals have no body";
    }
  }
}

TEST(Wire, WhatIsComputedSaysHowLongTheReplyIs) {
  namespace elements = hl::far::detail;
  for (std::uint32_t operation = elements::sum; operation <= elements::distinct; ++operation) {
    for (std::uint16_t count : {std::uint16_t{1}, kPagesMax}) {
      Header request = make_compute_request(operation, count, 77), parsed;
      ASSERT_EQ(parse_request(bytes_of(request), &parsed), Fault::none) << operation;
      EXPECT_EQ(parsed.length, 16u + 24u * count);
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::ok)), &parsed), Fault::none) << operation;
      EXPECT_EQ(parsed.length, elements::result_bytes(operation, count));
      EXPECT_LE(parsed.length, kComputeReplyMax);
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::damaged)), &parsed), Fault::none);
      EXPECT_EQ(parsed.length, 0u);
    }
  }
  for (std::uint32_t operation : {0u, 9u, 70'000u, UINT32_MAX})
    EXPECT_EQ(judge_request(make_compute_request(operation, 1, 77)), Fault::operation) << operation;
  EXPECT_EQ(judge_request(make_compute_request(elements::sum, 0, 77)), Fault::count);
  EXPECT_EQ(judge_request(make_compute_request(elements::sum, kPagesMax + 1, 77)), Fault::count);
}

// The operator's number and the size of its results are in the header: the length of a reply follows from it.
TEST(Wire, ApplicationsSayHowLongTheirRepliesAre) {
  for (std::uint32_t number : {0u, 1u, kOperatorsMax - 1})
    for (std::uint32_t bytes : {1u, 8u, 512u}) {
      Header request = make_apply_request(operator_field(number, bytes), 3, 77), reply, parsed;
      EXPECT_EQ(judge_request(request), Fault::none);
      EXPECT_EQ(request.length, 256u + 3 * (24 + 8));
      reply = make_reply(request, Code::ok);
      EXPECT_EQ(reply.length, 3 * bytes);
      EXPECT_EQ(parse_reply(bytes_of(reply), &parsed), Fault::none);
      EXPECT_EQ(operator_number(parsed.slab), number);
      reply = make_reply(request, Code::no_operator);
      EXPECT_EQ(parse_reply(bytes_of(reply), &parsed), Fault::none);
      EXPECT_EQ(parsed.length, 0u);
    }
  for (std::uint32_t field : {0u, operator_field(1, 0), operator_field(1, 513), operator_field(kOperatorsMax, 8)})
    EXPECT_EQ(judge_request(make_apply_request(field, 1, 77)), Fault::operation) << field;
  EXPECT_EQ(judge_request(make_apply_request(operator_field(0, 8), 0, 77)), Fault::count);
  Header found = make_reply(make_request(Type::find_operator, 0, 77), Code::ok), parsed;
  found.slab = operator_field(5, 8);
  EXPECT_EQ(parse_reply(bytes_of(found), &parsed), Fault::none);
  EXPECT_EQ(make_request(Type::find_operator, 0, 77).length, sizeof(OperatorRequest));
}

TEST(Wire, WhatIsComposedSaysHowLongRequestAndReplyAre) {
  for (std::uint32_t element : {0u, 4u, 8u})
    for (std::uint32_t pages : {1u, 3u, 20u}) {
      Header request = make_compose_request(compose_field(pages, element), 2, 77), parsed;
      ASSERT_EQ(parse_request(bytes_of(request), &parsed), Fault::none);
      EXPECT_EQ(parsed.length, 8 * pages + 2 * (24 + (element == 0 ? 0 : 512 / element)));
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::ok)), &parsed), Fault::none);
      EXPECT_EQ(parsed.length, 8 * pages);
      EXPECT_EQ(parsed.slab, compose_field(pages, element));
      ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::damaged)), &parsed), Fault::none);
      EXPECT_EQ(parsed.length, 0u);
    }
  EXPECT_EQ(judge_request(make_compose_request(compose_field(kPagesMax, 0), kPagesMax, 7)), Fault::none);
  for (std::uint32_t field : {compose_field(0, 0), compose_field(kPagesMax + 1, 0), compose_field(1, 1),
                              compose_field(1, 2), compose_field(1, 16), UINT32_MAX})
    EXPECT_EQ(judge_request(make_compose_request(field, 1, 7)), Fault::count) << field;
  EXPECT_EQ(judge_request(make_compose_request(compose_field(1, 0), 0, 7)), Fault::count);
  EXPECT_EQ(judge_request(make_compose_request(compose_field(1, 0), kPagesMax + 1, 7)), Fault::count);
  EXPECT_EQ(judge_request(make_compose_request(compose_field(1, 4), 40, 7)), Fault::count) << "40 masks of 128 bytes";
}

TEST(Wire, WhatIsPatchedSaysHowLongRequestAndReplyAre) {
  for (std::uint32_t element : {4u, 8u})
    for (std::uint32_t pages : {1u, 3u, kPagesMax + 0u})
      for (std::uint32_t count : {0u, 1u, 200u}) {
        Header request = make_patch_request(compose_field(pages, element), static_cast<std::uint16_t>(count), 77);
        Header parsed;
        ASSERT_EQ(parse_request(bytes_of(request), &parsed), Fault::none);
        EXPECT_EQ(parsed.length, 24 * pages + count * (2 + element));
        ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::ok)), &parsed), Fault::none);
        EXPECT_EQ(parsed.length, 8 * pages);
        ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::damaged)), &parsed), Fault::none);
        EXPECT_EQ(parsed.length, 0u);
      }
  EXPECT_EQ(judge_request(make_patch_request(compose_field(1, 4), kPatchesMax, 7)), Fault::none);
  EXPECT_EQ(judge_request(make_patch_request(compose_field(1, 4), kPatchesMax + 1, 7)), Fault::count);
  EXPECT_EQ(judge_request(make_patch_request(compose_field(2, 4), kPatchesMax, 7)), Fault::count);
  EXPECT_EQ(judge_request(make_patch_request(compose_field(1, 8), kPatchesMax, 7)), Fault::count);
  for (std::uint32_t field : {compose_field(0, 8), compose_field(kPagesMax + 1, 8), compose_field(1, 0),
                              compose_field(1, 2), compose_field(1, 16), UINT32_MAX})
    EXPECT_EQ(judge_request(make_patch_request(field, 1, 7)), Fault::count) << field;
}

TEST(Wire, PlacesNameEachElementOfEachPage) {
  for (std::size_t page : {std::size_t{0}, std::size_t{1}, std::size_t{kPagesMax - 1}})
    for (std::uint32_t element : {0u, 1u, 511u, 1023u}) {
      const Place place = make_place(page, element);
      EXPECT_EQ(place_page(place), page);
      EXPECT_EQ(place_element(place), element);
    }
}

TEST(Wire, PatchedPagesAreInRange) {
  const std::uint64_t last = kPageNumbers - 1;
  EXPECT_EQ(check_patched(std::array<Patched, 2>{{{last, last, 1u}, {0u, kNoPage, 1u}}}), Fault::none);
  EXPECT_EQ(check_patched(std::array<Patched, 1>{{{kPageNumbers, 0u, 1u}}}), Fault::page_number);
  EXPECT_EQ(check_patched(std::array<Patched, 1>{{{kNoPage, 0u, 1u}}}), Fault::page_number);
  EXPECT_EQ(check_patched(std::array<Patched, 1>{{{0u, kPageNumbers, 1u}}}), Fault::page_number);
}

TEST(Wire, MasksChooseWholeElementsOfTheirPiece) {
  std::array<std::byte, 64> mask{};
  auto chosen = [&](std::uint16_t offset, std::uint16_t bytes) {
    return chosen_bytes({std::uint64_t{0}, 1u, offset, bytes, 0u}, 8, mask);
  };
  EXPECT_EQ(chosen(0, 4096), 0u);
  mask[1] = std::byte{0b101};  // the ninth and the eleventh
  EXPECT_EQ(chosen(0, 4096), 16u);
  EXPECT_EQ(chosen(800, 88), 16u);
  EXPECT_EQ(chosen(800, 80), std::nullopt) << "behind the last element";
  EXPECT_EQ(chosen(800, 64), std::nullopt);
  EXPECT_EQ(chosen(804, 88), std::nullopt) << "half an element";
  EXPECT_EQ(chosen(800, 92), std::nullopt);
  mask.fill(std::byte{255});
  EXPECT_EQ(chosen(0, 4096), 4096u);
  EXPECT_EQ(chosen_bytes({std::uint64_t{0}, 1u, std::uint16_t{3}, std::uint16_t{5}, 0u}, 0, {}), 5u);
}

TEST(Wire, RangesAreEightBytesAndSayHowLongTheReplyIs) {
  for (std::uint64_t page : {std::uint64_t{0}, std::uint64_t{4097}, kPageNumbers - 1})
    for (std::uint32_t offset : {0u, 1u, 4095u})
      for (std::uint32_t bytes : {1u, 72u, 4096u}) {
        const Range range = make_range(FarPage{page}, offset, bytes);
        EXPECT_EQ(range_page(range), FarPage{page});
        EXPECT_EQ(range_offset(range), offset);
        EXPECT_EQ(range_bytes(range), bytes);
        EXPECT_EQ(check_ranges({&range, 1}, bytes) == Fault::none, offset + bytes <= kPageSize);
        EXPECT_NE(check_ranges({&range, 1}, bytes + 1), Fault::none) << "not what the header says";
      }
  for (std::uint16_t count : {std::uint16_t{1}, kPagesMax}) {
    Header request = make_ranges_request(72u * count, count, 77), parsed;
    ASSERT_EQ(parse_request(bytes_of(request), &parsed), Fault::none);
    EXPECT_EQ(parsed.length, 8u * count);
    ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::ok)), &parsed), Fault::none);
    EXPECT_EQ(parsed.length, 72u * count);
    ASSERT_EQ(parse_reply(bytes_of(make_reply(request, Code::not_yours)), &parsed), Fault::none);
    EXPECT_EQ(parsed.length, 0u);
    for (std::uint32_t bytes : {0u, count - 1u, count * 4096u + 1u, UINT32_MAX})
      EXPECT_EQ(judge_request(make_ranges_request(bytes, count, 1)), Fault::length) << bytes;
    Header reply = make_reply(request, Code::ok);
    reply.slab = count * 4096u + 1u;
    reply.length = count * 4096u + 1u;
    EXPECT_NE(judge_reply(reply), Fault::none);
  }
  EXPECT_EQ(judge_request(make_ranges_request(8, 0, 1)), Fault::count);
  EXPECT_EQ(judge_request(make_ranges_request(8, kPagesMax + 1, 1)), Fault::count);
  const std::array<Range, 2> one = {make_range(FarPage{7}, 8, 72), make_range(FarPage{9}, 0, 72)};
  const std::array<Range, 2> other = {make_range(FarPage{7}, 16, 72), make_range(FarPage{9}, 0, 72)};
  EXPECT_NE(echo_of(one), echo_of(other)) << "the echo depends on the places";
}

TEST(Wire, PiecesStayOnTheirPage) {
  auto judge = [](std::uint64_t page, std::uint16_t offset, std::uint16_t bytes, std::uint32_t reserved = 0) {
    wire::Piece piece{page, 1u, offset, bytes, reserved};
    return check_pieces({&piece, 1});
  };
  EXPECT_EQ(judge(5, 0, 4096), Fault::none);
  EXPECT_EQ(judge(5, 4088, 8), Fault::none);
  EXPECT_EQ(judge(5, 4088, 9), Fault::page_number);
  EXPECT_EQ(judge(5, 1, 4096), Fault::page_number);
  EXPECT_EQ(judge(5, 0, 0), Fault::page_number);
  EXPECT_EQ(judge(5, 65535, 65535), Fault::page_number);
  EXPECT_EQ(judge(kPageNumbers, 0, 8), Fault::page_number);
  EXPECT_EQ(judge(5, 0, 8, 1), Fault::reserved);
}

TEST(Wire, RejectsWhatDoesNotFit) {
  Header good = make_request(Type::read, 3, 1), bad = good;
  bad.length = good.length + 1;
  EXPECT_EQ(judge_request(bad), Fault::length);
  bad.length = UINT32_MAX;
  EXPECT_EQ(judge_request(bad), Fault::length);
  bad = good, bad.count = kPagesMax + 1;
  EXPECT_EQ(judge_request(bad), Fault::count);
  bad = good, bad.count = 0;
  EXPECT_EQ(judge_request(bad), Fault::count);
  bad = good, bad.type = 16;
  EXPECT_EQ(judge_request(bad), Fault::type);
  bad = good, bad.type = good.type | kReplyBit;
  EXPECT_EQ(judge_request(bad), Fault::type) << "a reply is not a request";
  bad = good, bad.status = 1;
  EXPECT_EQ(judge_request(bad), Fault::reserved);
  bad = good, bad.slab = 1;
  EXPECT_EQ(judge_request(bad), Fault::reserved);
  EXPECT_EQ(judge_reply(good), Fault::type) << "a request is not a reply";
  Header reply = make_reply(good, Code::ok);
  reply.status = kCodes;
  EXPECT_EQ(judge_reply(reply), Fault::status);
  reply = make_reply(good, Code::ok), reply.length = 4096;
  EXPECT_EQ(judge_reply(reply), Fault::length);
}

TEST(Wire, RejectsPagesAndRunsOutOfBounds) {
  std::vector<PageNumber> pages = {0u, kPageNumbers - 1};
  EXPECT_EQ(check_pages(pages), Fault::none);
  pages.push_back(kPageNumbers);
  EXPECT_EQ(check_pages(pages), Fault::page_number);
  auto judge = [](std::uint64_t first, std::uint32_t count, std::uint32_t reserved = 0) {
    wire::Run run{first, count, reserved};
    return check_runs({&run, 1});
  };
  EXPECT_EQ(judge(0, kSlabPages), Fault::none);
  EXPECT_EQ(judge(1, kSlabPages), Fault::page_number) << "runs stay in their slab";
  EXPECT_EQ(judge(kSlabPages - 1, 1), Fault::none);
  EXPECT_EQ(judge(kSlabPages - 1, UINT32_MAX), Fault::page_number);
  EXPECT_EQ(judge(5, 0), Fault::page_number);
  EXPECT_EQ(judge(UINT64_MAX, 1), Fault::page_number);
  EXPECT_EQ(judge(5, 1, 1), Fault::reserved);
}

TEST(Wire, TheEchoDependsOnPagesAndOrder) {
  std::vector<PageNumber> one = {1u, 2u}, two = {2u, 1u}, three = {1u, 2u, 0u};
  EXPECT_NE(echo_of(one), echo_of(two));
  EXPECT_NE(echo_of(one), echo_of(three));
  EXPECT_EQ(echo_of(one), echo_of(std::vector<PageNumber>{1u, 2u}));
}

// The same code as the fuzz target runs, over random and over slightly damaged messages.
TEST(Wire, SurvivesRandomAndDamagedBytes) {
  std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes;
  for (int round = 0; round < 20'000; ++round) {
    bytes.resize(random() % 400);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (round % 2 == 0 && bytes.size() > sizeof(Header)) {
      Header header = make_request(Type{static_cast<std::uint16_t>(1 + random() % 12)},
                                   static_cast<std::uint16_t>(random() % 70), random());
      if (header.type == static_cast<std::uint16_t>(Type::compute))
        header.slab = static_cast<std::uint32_t>(random() % 10);
      if (header.type == static_cast<std::uint16_t>(Type::apply))
        header.slab =
            operator_field(static_cast<std::uint32_t>(random() % 70), static_cast<std::uint32_t>(random() % 600));
      if (random() % 8 == 0)
        header = make_compose_request(
            compose_field(static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 3 * 4)),
            static_cast<std::uint16_t>(random() % 4), random());
      if (random() % 8 == 0)
        header = make_patch_request(
            compose_field(static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 3 * 4)),
            static_cast<std::uint16_t>(random() % 4), random());
      std::memcpy(bytes.data() + 1, &header, sizeof header);
      if (random() % 2 == 0) bytes[1 + random() % sizeof header] ^= static_cast<std::byte>(1u << random() % 8);
    }
    exercise(bytes);
  }
}

}  // namespace
}  // namespace hinterland::far::wire
