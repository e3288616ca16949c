// What the server patches and fills: the same as its client would, nothing of pages that are not the client's or not
// what the client wrote, all of a message or nothing of it, and never over what was written later.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "server/made_pages_test.hpp"

namespace hinterland::testing {
namespace {

using far::PatchedPage;

PageBuffer filled_with(std::uint64_t word) {
  PageBuffer page;
  for (std::size_t i = 0; i < kPageSize; i += sizeof word) std::memcpy(&page.bytes[i], &word, sizeof word);
  return page;
}

// Pages that are to be made, and what they then hold.
struct Patching {
  Patching(const Sources& known, std::uint32_t element_bytes, std::mt19937_64& random) {
    static constexpr std::array<std::uint64_t, 4> kMost = {1, 3, 40, 900};
    const std::size_t count = 1 + random() % Sources::kTargets, most = kMost[random() % kMost.size()];
    for (std::size_t i = 0; i < count; ++i) {
      const bool fills = random() % 4 == 0;
      const std::size_t from = random() % Sources::kCount;
      const std::uint64_t fill = random();
      const auto elements = static_cast<std::uint32_t>(random() % (most + 1));
      pages.push_back({known.targets[i], fills ? std::nullopt : std::optional(known.numbers[from]), fill,
                       static_cast<std::uint32_t>(patches.size()), elements});
      contents.push_back(fills ? filled_with(fill) : known.contents[from]);
      for (std::uint32_t k = 0; k < elements; ++k) {
        patches.push_back({random(), static_cast<std::uint32_t>(random() % (kPageSize / element_bytes)), 0});
        std::memcpy(&contents.back().bytes[patches.back().element * element_bytes], &patches.back().value,
                    element_bytes);
      }
    }
  }
  std::vector<PatchedPage> pages;
  std::vector<hl_patch> patches;
  std::vector<PageBuffer> contents;
};

TEST(ServerPatches, AsTheClientWould) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  RunningServer server(small_server());
  Client client(server->port());
  ASSERT_TRUE(client.device->patches());
  Sources known(client, seed);
  for (int round = 0; round < 30; ++round) {
    const std::uint32_t element_bytes = random() % 2 == 0 ? 4 : 8;
    Patching wanted(known, element_bytes, random);
    auto done = std::make_unique<bool[]>(wanted.pages.size());
    ASSERT_EQ(client.device->patch(element_bytes, wanted.pages, wanted.patches, done.get()), 0);
    for (std::size_t i = 0; i < wanted.pages.size(); ++i) {
      const bool fits = wanted.pages[i].count <= (element_bytes == 4 ? 673u : 404u);
      ASSERT_EQ(done[i], fits) << wanted.pages[i].count << " elements";
      if (!done[i]) continue;
      ASSERT_EQ(read_back(client, wanted.pages[i].page), wanted.contents[i]) << i;
    }
    client.device->discard(known.targets);
  }
  for (std::size_t i = 0; i < Sources::kCount; ++i)
    EXPECT_EQ(read_back(client, known.numbers[i]), known.contents[i]) << "sources stay";
}

TEST(ServerPatches, NothingOfPagesThatHoldNothing) {
  RunningServer server(small_server());
  Client client(server->port());
  Sources known(client, 1);
  client.device->discard({&known.numbers[1], 1});
  const FarPage beyond{std::uint64_t{1} << 36};
  const hl_patch patch{7, 3, 0};
  const std::vector<PatchedPage> pages = {
      {known.targets[0], known.numbers[0], 0, 0, 1}, {known.targets[1], known.numbers[1], 0, 0, 1},
      {known.targets[2], FarPage{4000}, 0, 0, 1},    {known.targets[3], beyond, 0, 0, 1},
      {beyond, known.numbers[0], 0, 0, 1},           {known.targets[4], std::nullopt, 0, 0, 0}};
  std::array<bool, 6> done{};
  ASSERT_EQ(client.device->patch(8, pages, {&patch, 1}, done.data()), 0);
  EXPECT_EQ(done, (std::array<bool, 6>{true, false, false, false, false, true}));
}

TEST(ServerPatches, NotWhereItWasToldNotTo) {
  ServerOptions options = small_server();
  options.compute = false;
  RunningServer server(options);
  Client client(server->port());
  EXPECT_FALSE(client.device->patches());
  RawClient raw(server->port());
  auto request = wire::make_patch_request(wire::compose_field(1, 8), 1, 7);
  std::vector<std::byte> body(request.length);
  EXPECT_FALSE(raw.ask(request, body)) << "cut";
}

TEST(ServerPatches, AClientWhoseServerDiedIsTold) {
  ServerProcess server(small_server());
  Client client(server.port(), settings_with("", 2'000'000'000));
  Sources known(client, 1);
  const hl_patch patch{7, 3, 0};
  const PatchedPage page{known.targets[0], known.numbers[0], 0, 0, 1};
  bool done = false;
  ASSERT_EQ(client.device->patch(8, {&page, 1}, {&patch, 1}, &done), 0);
  ASSERT_TRUE(done);
  server.kill();
  done = false;
  EXPECT_NE(client.device->patch(8, {&page, 1}, {&patch, 1}, &done), 0);
  EXPECT_FALSE(done);
}

// --- by hand

class PatchByHand : public PagesByHand {
 protected:
  wire::Patched patched(std::uint64_t page) const { return {page, 3u, checksum_}; }
  static wire::Patched filled(std::uint64_t page, std::uint64_t word) { return {page, wire::kNoPage, word}; }
  // The status of the answer. Each place gets twos.
  std::uint32_t ask(std::vector<wire::Patched> pages, std::vector<wire::Place> places, std::uint64_t stamp = 100,
                    std::uint32_t element = 8) {
    auto header = wire::make_patch_request(wire::compose_field(static_cast<std::uint32_t>(pages.size()), element),
                                           static_cast<std::uint16_t>(places.size()), 7);
    header.stamp = stamp;
    std::vector<std::byte> body;
    for (auto bytes : {std::as_bytes(std::span(pages)), std::as_bytes(std::span(places))})
      body.insert(body.end(), bytes.begin(), bytes.end());
    body.resize(body.size() + places.size() * element, std::byte{2});
    return PagesByHand::ask(header, body, wire::echo_of(pages));
  }
  PageBuffer with_twos(std::size_t at, std::size_t bytes) const {
    PageBuffer page = ones_;
    std::fill_n(page.bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes, static_cast<unsigned char>(2));
    return page;
  }
};

TEST_F(PatchByHand, TellsTheChecksumsOfWhatItWrote) {
  ASSERT_EQ(ask({patched(8), patched(9), filled(10, 0x0303030303030303)},
                {wire::make_place(0, 511), wire::make_place(1, 0)}),
            0u);
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(read(8), with_twos(4088, 8));
  EXPECT_EQ(read(9), with_twos(0, 8));
  EXPECT_EQ(read(10), filled_with(0x0303030303030303));
  for (std::uint64_t i : {0u, 1u, 2u}) EXPECT_EQ(told_[i], far::SharedPages::checksum_of(read(8 + i).bytes.data()));
  ASSERT_EQ(ask({patched(8)}, {wire::make_place(0, 1023)}, 101, 4), 0u);
  EXPECT_EQ(read(8), with_twos(4092, 4));
}

TEST_F(PatchByHand, RefusesWhatMakesNoSenseAndLivesOn) {
  EXPECT_EQ(ask({patched(8)}, {wire::make_place(0, 512)}), kBadRequest) << "beyond the page";
  EXPECT_EQ(ask({patched(8)}, {wire::make_place(1, 0)}), kBadRequest) << "of a page that is not there";
  EXPECT_EQ(ask({patched(8), patched(8)}, {}), kBadRequest) << "the same page twice";
  EXPECT_EQ(ask({patched(3)}, {}), kBadRequest) << "over its own source";
  EXPECT_EQ(ask({filled(3, 7), patched(8)}, {}), kBadRequest) << "over another's source";
  EXPECT_EQ(read(8), PageBuffer()) << "nothing was written";
  EXPECT_EQ(read(3), ones_);
  EXPECT_EQ(ask({patched(8)}, {wire::make_place(0, 0)}), 0u) << "the session lives";
}

TEST_F(PatchByHand, RefusesPagesOfOthersAndOtherPages) {
  wire::Patched other = patched(8);
  other.from = std::uint64_t{far::kSlabPages} + 3;
  EXPECT_EQ(ask({other}, {}), kNotYours);
  EXPECT_EQ(ask({patched(std::uint64_t{far::kSlabPages} + 8)}, {}), kNotYours);
  EXPECT_EQ(ask({filled(std::uint64_t{far::kSlabPages} + 8, 7)}, {}), kNotYours);
  other = patched(9), other.word = checksum_ + 1;
  EXPECT_EQ(ask({patched(8), other}, {}), kDamaged);
  EXPECT_EQ(read(8), PageBuffer()) << "all of a message, or nothing";
  other = patched(8), other.from = 4u;
  EXPECT_EQ(ask({other}, {}), kDamaged) << "never written";
  EXPECT_EQ(ask({patched(8)}, {}), 0u);
}

TEST_F(PatchByHand, EndsConnectionsThatNamePagesBeyondAll) {
  EXPECT_EQ(ask({patched(wire::kPageNumbers)}, {}), kCut);
}

TEST_F(PatchByHand, EndsConnectionsThatNameSourcesBeyondAll) {
  wire::Patched other = patched(8);
  other.from = wire::kNoPage - 1;
  EXPECT_EQ(ask({other}, {}), kCut);
}

// Sent again after a reconnect, when the page has been given away and written anew.
TEST_F(PatchByHand, WhatWasWrittenLaterStays) {
  ASSERT_EQ(ask({filled(8, 5)}, {}, 200), 0u);
  ASSERT_EQ(ask({patched(8)}, {}, 199), 0u);
  EXPECT_EQ(read(8), filled_with(5));
  ASSERT_EQ(ask({patched(8)}, {}, 201), 0u);
  EXPECT_EQ(read(8), ones_);
}

}  // namespace
}  // namespace hinterland::testing
