// Parts of pages at the server: what it gives, and what it refuses.
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

using far::testing::count_wrong;
using far::testing::page_content;
using far::testing::pages_of_slab;
using far::testing::write_pages;
using wire::Range;

std::vector<std::byte> bytes_of_list(std::span<const Range> ranges) {
  const auto bytes = std::as_bytes(ranges);
  return {bytes.begin(), bytes.end()};
}

wire::Header request_for(std::span<const Range> ranges, std::uint64_t id = 9) {
  std::uint32_t bytes = 0;
  for (const Range& range : ranges) bytes += range_bytes(range);
  return wire::make_ranges_request(bytes, static_cast<std::uint16_t>(ranges.size()), id);
}

TEST(ServerRanges, AreTheBytesAndNoMore) {
  RunningServer server(small_server());
  RawClient client(server->port());
  const PageBuffer content = page_content(7);
  write_first_page(client, 3, content);
  const std::vector<Range> ranges = {wire::make_range(FarPage{3}, 0, 1), wire::make_range(FarPage{3}, 1000, 72),
                                     wire::make_range(FarPage{3}, 4095, 1), wire::make_range(FarPage{3}, 0, 4096),
                                     wire::make_range(FarPage{4}, 8, 16)};
  const auto reply = client.ask(request_for(ranges), bytes_of_list(ranges));
  ASSERT_EQ(status_of(reply), 0u);
  EXPECT_EQ(reply->length, 1u + 72 + 1 + 4096 + 16);
  EXPECT_EQ(reply->slab, reply->length);
  EXPECT_EQ(reply->stamp, wire::echo_of(ranges));
  std::vector<std::byte> body(reply->length);
  ASSERT_TRUE(client.receive(body));
  std::size_t at = 0;
  for (const Range& range : std::span(ranges).first(4)) {
    EXPECT_EQ(std::memcmp(&body[at], content.bytes.data() + range_offset(range), range_bytes(range)), 0) << at;
    at += range_bytes(range);
  }
  EXPECT_EQ(std::count(body.begin() + static_cast<long>(at), body.end(), std::byte{0}), 16) << "was never written";
  EXPECT_EQ(server->stats().ranges_read, 5u);
  EXPECT_EQ(server->stats().pages_read, 0u);
}

TEST(ServerRanges, OfOthersArePutTogetherWithNothing) {
  RunningServer server(small_server());
  Client owner(server->port());
  const auto pages = pages_of_slab(owner.slab(), 0, 16);
  ASSERT_EQ(write_pages(*owner.channel, pages, 1), 0);
  RawClient thief(server->port());
  for (std::uint64_t slab = 0; slab < 10; ++slab) {
    const Range range = wire::make_range(FarPage{slab * far::kSlabPages}, 8, 72);
    EXPECT_EQ(status_of(thief.ask(request_for({&range, 1}), wire::bytes_of(range))), kNotYours);
  }
  write_first_page(thief, 0, page_content(5));
  const std::vector<Range> one_of_many = {wire::make_range(FarPage{0}, 0, 72),
                                          wire::make_range(FarPage{far::kSlabPages}, 0, 72)};
  const auto reply = thief.ask(request_for(one_of_many), bytes_of_list(one_of_many));
  EXPECT_EQ(status_of(reply), kNotYours);
  EXPECT_EQ(reply->length, 0u) << "nor of those that are his";
  EXPECT_EQ(status_of(thief.ask(make_request(wire::Type::ping, 0, 3))), 0u) << "the connection goes on";
  EXPECT_EQ(count_wrong(*owner.channel, pages, 1), 0);
}

TEST(ServerRanges, ThatMakeNoSenseEndTheConnection) {
  RunningServer server(small_server());
  auto is_cut = [&](const wire::Header& request, std::vector<Range> ranges) {
    RawClient client(server->port());
    EXPECT_EQ(status_of(client.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
    client.send(wire::bytes_of(request));
    client.send(bytes_of_list(ranges));
    return client.closed();
  };
  const Range good = wire::make_range(FarPage{0}, 0, 72), beyond = wire::make_range(FarPage{0}, 4090, 8);
  EXPECT_TRUE(is_cut(request_for({&beyond, 1}), {beyond})) << "beyond the page";
  EXPECT_TRUE(is_cut(wire::make_ranges_request(71, 1, 2), {good})) << "less than the ranges";
  EXPECT_TRUE(is_cut(wire::make_ranges_request(4096, 1, 2), {good})) << "more than the ranges";
  EXPECT_TRUE(is_cut(wire::make_ranges_request(4097, 1, 2), {good})) << "more than a page";
  EXPECT_TRUE(is_cut(wire::make_ranges_request(0, 1, 2), {good}));
  EXPECT_TRUE(is_cut(wire::make_ranges_request(0, 0, 2), {})) << "none";
  wire::Header many = wire::make_ranges_request(72 * 65, 65, 2);
  many.length = 65 * sizeof(Range);
  EXPECT_TRUE(is_cut(many, std::vector<Range>(65, good))) << "too many";
  wire::Header longer = request_for({&good, 1});
  longer.length = 16u;
  EXPECT_TRUE(is_cut(longer, {good, good})) << "another length than it says";
  EXPECT_EQ(server->stats().ranges_read, 0u);
  RawClient other(server->port());
  EXPECT_EQ(status_of(other.ask(make_request(wire::Type::ping, 0, 8))), 0u);
}

TEST(ServerRanges, WhoDoesNotReadThemIsNotReadFrom) {
  RunningServer server(small_server());
  RawClient deaf(server->port());
  ASSERT_EQ(status_of(deaf.ask(make_request(wire::Type::slab_allocate, 0, 1))), 0u);
  const std::vector<Range> ranges(64, wire::make_range(FarPage{0}, 1, 4095));
  const wire::Header header = request_for(ranges);
  for (int i = 0; i < 200; ++i) deaf.send(wire::bytes_of(header)), deaf.send(bytes_of_list(ranges));  // 50 MiB
  std::uint64_t read = 0;
  within(300'000'000, [&] { return std::exchange(read, server->stats().ranges_read) == 200 * 64; });
  EXPECT_LT(server->stats().ranges_read, 200u * 64) << "sockets hold a few MiB at most";
  Client other(server->port());
  EXPECT_TRUE(other.device->info().ranges);
  auto mine = pages_of_slab(other.slab(), 0, 64);
  EXPECT_EQ(write_pages(*other.channel, mine, 5), 0);
  EXPECT_EQ(count_wrong(*other.channel, mine, 5), 0);
}

// Of a client of the product, in several messages at a time, with others beside: against what was written.
TEST(ServerRanges, Model) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  RunningServer server(small_server());
  Client client(server->port());
  const auto pages = pages_of_slab(client.slab(), 0, 200);
  ASSERT_EQ(write_pages(*client.channel, pages, 40), 0);
  for (int round = 0; round < 100; ++round) {
    std::vector<far::Request> requests;
    std::vector<PageBuffer> buffers(250);
    for (PageBuffer& buffer : buffers) {
      const std::uint64_t which = random() % 8;
      const auto offset = static_cast<std::uint16_t>(which == 0 ? 0 : random() % kPageSize);
      const auto most = std::min<std::uint64_t>(kPageSize - offset, which < 6 ? 100 : kPageSize);
      const auto bytes = static_cast<std::uint16_t>(which == 0 ? kPageSize : 1 + random() % most);
      requests.push_back({far::Operation::read, pages[random() % pages.size()], &buffer, 0, offset, bytes});
    }
    const auto errors = far::testing::run_to_end(*client.channel, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const far::Request& each = requests[i];
      ASSERT_EQ(errors[i], 0);
      const PageBuffer content = page_content(40 + each.page.page_in_slab());
      ASSERT_EQ(std::memcmp(each.buffer, content.bytes.data() + each.offset, each.bytes), 0) << i;
    }
  }
  EXPECT_GT(server->stats().ranges_read, 100u * 150);
}

}  // namespace
}  // namespace hinterland::testing
