// Pages patched and filled over tcp:, by servers that lie, break off, or do not know how. Those that work are in
// src/server/patch_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "far/tcp/fake_server.hpp"
#include "far/tcp/on_fake_server.hpp"
#include "far/tcp/tcp_device.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

class TcpPatch : public OnFakeServer {
 protected:
  static constexpr std::uint64_t kFirst = 400;  // contents of the source
  static constexpr std::uint64_t kFill = 0x0102030405060708;

  void open(std::uint64_t timeout_ns = 60'000'000'000) {
    ASSERT_NO_FATAL_FAILURE(open_device(timeout_ns));
    sources = pages_of_slab(first_slab, 0, 1);
    targets = pages_of_slab(first_slab, 100, 2);
    ASSERT_EQ(write_pages(*channel, sources, kFirst), 0);
  }
  // The first target is filled; the second is the source with two other elements.
  int patch() {
    const std::array<hl_patch, 2> patches{{{7, 0, 0}, {8, 511, 0}}};
    const std::array<PatchedPage, 2> pages{
        {{targets[0], std::nullopt, kFill, 0, 0}, {targets[1], sources[0], 0, 0, 2}}};
    done = {};
    return device->patch(8, pages, patches, done.data());
  }
  static PageBuffer filled() {
    PageBuffer made;
    for (std::size_t i = 0; i < kPageSize; i += sizeof kFill) std::memcpy(&made.bytes[i], &kFill, sizeof kFill);
    return made;
  }
  static PageBuffer patched() {
    PageBuffer made = page_content(kFirst);
    const std::uint64_t first = 7, last = 8;
    std::memcpy(&made.bytes[0], &first, sizeof first);
    std::memcpy(&made.bytes[511 * 8], &last, sizeof last);
    return made;
  }
  int read(FarPage page, PageBuffer* into) {
    return run_to_end(*channel, {{Operation::read, page, into->bytes.data(), 0}})[0];
  }
  void expect_patched() {
    PageBuffer back;
    EXPECT_EQ(read(targets[0], &back), 0);
    EXPECT_EQ(back, filled());
    EXPECT_EQ(read(targets[1], &back), 0);
    EXPECT_EQ(back, patched());
  }
  std::vector<FarPage> sources, targets;
  std::array<bool, 2> done{};
};

TEST_F(TcpPatch, AServerThatOnlyComposesIsNeverAsked) {
  server.composes = wire::kComposes;
  open();
  EXPECT_TRUE(device->composes());
  EXPECT_FALSE(device->patches());
}

TEST_F(TcpPatch, WhatIsPatchedCanBeRead) {
  server.composes = wire::kComposes | wire::kPatches;
  open();
  EXPECT_TRUE(device->patches());
  ASSERT_EQ(patch(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  expect_patched();
  EXPECT_EQ(server.composes_asked, 1) << "one message for both";
}

// Of a filled page the client knows the checksum; of another it notices when it reads it.
TEST_F(TcpPatch, AWrongChecksumIsNeverOtherBytes) {
  server.composes = wire::kPatches;
  open();
  server.lie(Lie::bad_content, 1);  // in the last checksum
  ASSERT_EQ(patch(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  PageBuffer back;
  EXPECT_EQ(read(targets[1], &back), EBADMSG);

  const PatchedPage page{targets[0], std::nullopt, kFill, 0, 0};
  bool filled = false;
  server.lie(Lie::bad_content, 1);
  ASSERT_EQ(device->patch(8, {&page, 1}, {}, &filled), 0);
  EXPECT_FALSE(filled);
}

class TcpPatchLies : public TcpPatch, public ::testing::WithParamInterface<Lie> {};

// Once: the client connects anew and asks again. Twice: it leaves the pages to its caller, and goes on.
TEST_P(TcpPatchLies, AreToldOnce) {
  server.composes = wire::kPatches;
  open(GetParam() == Lie::silence ? 1'000'000'000 : 60'000'000'000);
  server.lie(GetParam(), 1);
  ASSERT_EQ(patch(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  expect_patched();
}

TEST_P(TcpPatchLies, AreToldAgain) {
  server.composes = wire::kPatches;
  open(1'000'000'000);
  server.lie(GetParam(), 2);
  EXPECT_NE(patch(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{}));
  EXPECT_EQ(device->lost(), 0);
  device->discard(targets);
  PageBuffer back;
  EXPECT_EQ(read(targets[0], &back), EIO);
  EXPECT_EQ(read(sources[0], &back), 0);
  EXPECT_EQ(back, page_content(kFirst)) << "the source is as it was";
}

INSTANTIATE_TEST_SUITE_P(All, TcpPatchLies,
                         ::testing::Values(Lie::rubbish, Lie::wrong_id, Lie::wrong_length, Lie::wrong_pages,
                                           Lie::wrong_type, Lie::silence, Lie::hang_up, Lie::half_a_reply));

}  // namespace
}  // namespace hinterland::far::testing
