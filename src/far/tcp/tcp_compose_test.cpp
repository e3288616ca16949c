// Pages composed over tcp:, by servers that lie, break off, or do not know how. Those that work are in
// src/server/compose_test.cpp.
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

class TcpCompose : public OnFakeServer {
 protected:
  static constexpr std::uint64_t kFirst = 300;  // contents of the first page
  static constexpr std::size_t kSources = 8;

  void open(std::uint64_t timeout_ns = 60'000'000'000) {
    ASSERT_NO_FATAL_FAILURE(open_device(timeout_ns));
    sources = pages_of_slab(first_slab, 0, kSources);
    targets = pages_of_slab(first_slab, 100, 2);
    ASSERT_EQ(write_pages(*channel, sources, kFirst), 0);
  }
  // The first target is a copy of the first source; the second has the end of one and the beginning of another.
  int compose() {
    const std::array<ComposedPart, 3> parts{
        {{sources[0], 0, kPageSize}, {sources[1], 100, kPageSize - 100}, {sources[2], 0, 100}}};
    const std::array<ComposedPage, 2> pages{{{targets[0], 0, 1}, {targets[1], 1, 2}}};
    done = {};
    return device->compose(0, pages, parts, done.data());
  }
  static PageBuffer second() {
    const PageBuffer one = page_content(kFirst + 1), other = page_content(kFirst + 2);
    PageBuffer made;
    std::copy(one.bytes.begin() + 100, one.bytes.end(), made.bytes.begin());
    std::copy_n(other.bytes.begin(), 100, made.bytes.end() - 100);
    return made;
  }
  int read(FarPage page, PageBuffer* into) {
    return run_to_end(*channel, {{Operation::read, page, into->bytes.data(), 0}})[0];
  }
  void expect_composed() {
    PageBuffer back;
    EXPECT_EQ(read(targets[0], &back), 0);
    EXPECT_EQ(back, page_content(kFirst));
    EXPECT_EQ(read(targets[1], &back), 0);
    EXPECT_EQ(back, second());
  }
  std::vector<FarPage> sources, targets;
  std::array<bool, 2> done{};
};

TEST_F(TcpCompose, AnOlderServerIsNeverAsked) {
  open();
  EXPECT_FALSE(device->composes());
}

TEST_F(TcpCompose, WhatIsComposedCanBeRead) {
  server.composes = wire::kComposes;
  open();
  EXPECT_TRUE(device->composes());
  ASSERT_EQ(compose(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  expect_composed();
  EXPECT_EQ(server.composes_asked, 1);
}

// Of a copy the client knows the checksum; of another page it notices when it reads it.
TEST_F(TcpCompose, AWrongChecksumIsNeverOtherBytes) {
  server.composes = wire::kComposes;
  open();
  server.lie(Lie::bad_content, 1);  // in the last checksum
  ASSERT_EQ(compose(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  PageBuffer back;
  EXPECT_EQ(read(targets[1], &back), EBADMSG);

  const ComposedPart part{sources[3], 0, kPageSize};
  const ComposedPage page{targets[0], 0, 1};
  bool copied = false;
  server.lie(Lie::bad_content, 1);
  ASSERT_EQ(device->compose(0, {&page, 1}, {&part, 1}, &copied), 0);
  EXPECT_FALSE(copied);
}

class TcpComposeLies : public TcpCompose, public ::testing::WithParamInterface<Lie> {};

// Once: the client connects anew and asks again. Twice: it leaves the pages to its caller, and goes on.
TEST_P(TcpComposeLies, AreToldOnce) {
  server.composes = wire::kComposes;
  open(GetParam() == Lie::silence ? 1'000'000'000 : 60'000'000'000);
  server.lie(GetParam(), 1);
  ASSERT_EQ(compose(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{true, true}));
  expect_composed();
}

TEST_P(TcpComposeLies, AreToldAgain) {
  server.composes = wire::kComposes;
  open(1'000'000'000);
  server.lie(GetParam(), 2);
  EXPECT_NE(compose(), 0);
  EXPECT_EQ(done, (std::array<bool, 2>{}));
  EXPECT_EQ(device->lost(), 0);
  // Their caller gives them back, and they can be written as others are.
  device->discard(targets);
  PageBuffer back;
  EXPECT_EQ(read(targets[0], &back), EIO);
  ASSERT_EQ(write_pages(*channel, targets, 7), 0);
  EXPECT_EQ(read(targets[1], &back), 0);
  EXPECT_EQ(back, page_content(8));
}

INSTANTIATE_TEST_SUITE_P(All, TcpComposeLies,
                         ::testing::Values(Lie::rubbish, Lie::wrong_id, Lie::wrong_length, Lie::wrong_pages,
                                           Lie::wrong_type, Lie::silence, Lie::hang_up, Lie::half_a_reply));

}  // namespace
}  // namespace hinterland::far::testing
