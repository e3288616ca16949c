// Parts of pages over tcp:, from servers that lie, and from one that does not know them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "far/tcp/fake_server.hpp"
#include "far/tcp/on_fake_server.hpp"
#include "far/tcp/tcp_device.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

class TcpRanges : public OnFakeServer {
 protected:
  static constexpr std::uint64_t kFirst = 300;  // contents of the first page

  void open() {
    ASSERT_NO_FATAL_FAILURE(open_device(2'000'000'000));
    pages = pages_of_slab(first_slab, 0, 16);
    ASSERT_EQ(write_pages(*channel, pages, kFirst), 0);
  }
  // 72 bytes here and there; of each page several.
  std::vector<Request> parts(std::size_t count) {
    buffers.assign(count, PageBuffer());
    std::vector<Request> requests;
    for (std::size_t i = 0; i < count; ++i) {
      const auto offset = static_cast<std::uint16_t>(i * 1000 % 4000);
      requests.push_back({Operation::read, pages[i % pages.size()], &buffers[i], 0, offset, 72});
    }
    return requests;
  }
  void expect_right(std::span<const Request> requests, std::span<const int> errors) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(errors[i], 0) << i;
      const PageBuffer content = page_content(kFirst + requests[i].page.page_in_slab());
      EXPECT_EQ(std::memcmp(requests[i].buffer, content.bytes.data() + requests[i].offset, requests[i].bytes), 0)
          << i;
    }
  }
  std::vector<FarPage> pages;
  std::vector<PageBuffer> buffers;
};

TEST_F(TcpRanges, ThoseThatAreAskedForTogetherAreOneMessage) {
  open();
  const auto requests = parts(wire::kPagesMax);
  expect_right(requests, run_to_end(*channel, requests));
  EXPECT_EQ(server.ranges_asked.load(), 1);
  const auto more = parts(wire::kPagesMax + 1);
  expect_right(more, run_to_end(*channel, more));
  EXPECT_EQ(server.ranges_asked.load(), 3);
}

TEST_F(TcpRanges, PagesAndPartsAndWritesMayBeMixed) {
  open();
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    auto requests = parts(40);
    std::vector<Request> writes;
    for (Request& each : requests) {
      if (random() % 3 == 0) each.offset = 0, each.bytes = kPageSize;
      if (random() % 5 == 0) each.bytes = static_cast<std::uint16_t>(1 + random() % 96);
    }
    PageBuffer content = page_content(kFirst + 9);
    requests.insert(requests.begin() + static_cast<long>(random() % 40), {Operation::write, pages[9], &content, 0});
    if (round % 2 == 1) server.lie(Lie::backwards, static_cast<int>(random() % 4));
    const auto errors = run_to_end(*channel, requests);
    server.lie(Lie::none, 0);
    expect_right(requests, errors);
  }
  EXPECT_EQ(device->lost(), 0);
}

TEST_F(TcpRanges, OneLieIsForgiven) {
  open();
  for (Lie lie : {Lie::rubbish, Lie::wrong_id, Lie::wrong_length, Lie::wrong_pages, Lie::wrong_type, Lie::wrong_size,
                  Lie::hang_up, Lie::half_a_reply}) {
    SCOPED_TRACE(static_cast<int>(lie));
    server.lie(lie, 1);
    const auto requests = parts(wire::kPagesMax);
    expect_right(requests, run_to_end(*channel, requests));
    EXPECT_EQ(device->lost(), 0);
  }
}

TEST_F(TcpRanges, AServerThatKeepsAnsweringForOtherPlacesIsGivenUp) {
  open();
  server.lie(Lie::wrong_pages, 1'000'000);
  for (int error : run_to_end(*channel, parts(8))) EXPECT_EQ(error, EPROTO);
  EXPECT_EQ(device->lost(), EPROTO);
}

// Nobody but who asked for them can tell: it is said so (device.hpp), and held here that nothing else is made of it.
TEST_F(TcpRanges, WrongBytesComeAsTheyAre) {
  open();
  server.lie(Lie::bad_content, 1);
  const auto requests = parts(1);
  EXPECT_EQ(run_to_end(*channel, requests), std::vector<int>{0});
  const PageBuffer content = page_content(kFirst);
  EXPECT_NE(std::memcmp(buffers[0].bytes.data(), content.bytes.data(), 72), 0);
  EXPECT_EQ(server.ranges_asked.load(), 1);
  EXPECT_EQ(device->lost(), 0);
}

TEST_F(TcpRanges, WhatWasNeverWrittenIsNotAskedFor) {
  open();
  PageBuffer buffer;
  const Request read{Operation::read, pages_of_slab(pages[0].slab(), 99, 1)[0], &buffer, 0, 8, 8};
  EXPECT_EQ(run_to_end(*channel, {read}), std::vector<int>{EIO});
  device->discard(std::span(pages).first(1));
  EXPECT_EQ(run_to_end(*channel, parts(1)), std::vector<int>{EIO});
  EXPECT_EQ(server.ranges_asked.load(), 0);
}

TEST_F(TcpRanges, AServerThatDoesNotKnowThemIsNotAsked) {
  server.knows_ranges = false;
  open();
  EXPECT_FALSE(device->info().ranges);
  for (int error : run_to_end(*channel, parts(8))) EXPECT_EQ(error, EINVAL);
  EXPECT_EQ(count_wrong(*channel, pages, kFirst), 0);
  EXPECT_EQ(server.ranges_asked.load(), 0);
  EXPECT_EQ(device->lost(), 0);
}

}  // namespace
}  // namespace hinterland::far::testing
