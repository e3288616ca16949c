// What the server composes: the same as its client would, nothing of pages that are not the client's or not what the
// client wrote, all of a message or nothing of it, and never over what was written later.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <thread>

#include "server/made_pages_test.hpp"

namespace hinterland::testing {
namespace {

using far::ComposedPage;
using far::ComposedPart;

// Pages to be composed, and what they then hold.
struct Composition {
  Composition(const Sources& sources, std::uint32_t element, std::mt19937_64& random) : element_bytes(element) {
    const std::size_t count = 1 + random() % Sources::kTargets;
    masks.reserve(count * 40);
    for (std::size_t i = 0; i < count; ++i) {
      pages.push_back({sources.targets[i], static_cast<std::uint32_t>(parts.size()), 0});
      contents.emplace_back();
      element == 0 ? add_bytes(sources, random) : add_elements(sources, random);
      pages.back().count = static_cast<std::uint32_t>(parts.size()) - pages.back().first;
    }
  }
  // Parts of any length.
  void add_bytes(const Sources& sources, std::mt19937_64& random) {
    for (std::size_t filled = 0; filled < kPageSize;) {
      const std::size_t which = random() % Sources::kCount, most = kPageSize - filled;
      const std::size_t bytes = random() % 4 != 0 ? most : 1 + random() % most;
      const std::size_t offset = random() % (kPageSize - bytes + 1);
      parts.push_back(
          {sources.numbers[which], static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(bytes)});
      std::copy_n(&sources.contents[which].bytes[offset], bytes, &contents.back().bytes[filled]);
      filled += bytes;
    }
  }
  // Any elements of whole pages or their ends.
  void add_elements(const Sources& sources, std::mt19937_64& random) {
    const std::size_t on_page = kPageSize / element_bytes, share = 1 + random() % 8;
    for (std::size_t filled = 0; filled < on_page;) {
      const std::size_t which = random() % Sources::kCount;
      const std::size_t first = random() % 3 == 0 ? random() % on_page : 0;
      auto& mask = masks.emplace_back();
      for (std::size_t i = 0; first + i < on_page && filled < on_page; ++i) {
        if (random() % 8 >= share) continue;
        mask[i / 8] |= std::byte{1} << static_cast<int>(i % 8);
        std::copy_n(&sources.contents[which].bytes[(first + i) * element_bytes], element_bytes,
                    &contents.back().bytes[filled++ * element_bytes]);
      }
      parts.push_back({sources.numbers[which], static_cast<std::uint16_t>(first * element_bytes),
                       static_cast<std::uint16_t>((on_page - first) * element_bytes), mask.data()});
    }
  }
  const std::uint32_t element_bytes;
  std::vector<ComposedPage> pages;
  std::vector<ComposedPart> parts;
  std::vector<std::array<std::byte, 128>> masks;
  std::vector<PageBuffer> contents;
};

TEST(ServerComposes, WhatTheClientWouldCompose) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  RunningServer server(small_server());
  Client client(server->port());
  ASSERT_TRUE(client.device->composes());
  Sources sources(client, seed);
  for (int round = 0; round < 30; ++round) {
    Composition wanted(sources, static_cast<std::uint32_t>(random() % 3 * 4), random);
    ASSERT_LE(wanted.masks.size(), wanted.masks.capacity()) << "they must not move";
    auto done = std::make_unique<bool[]>(wanted.pages.size());
    ASSERT_EQ(client.device->compose(wanted.element_bytes, wanted.pages, wanted.parts, done.get()), 0);
    for (std::size_t i = 0; i < wanted.pages.size(); ++i) {
      const bool fits = wanted.pages[i].count <= (wanted.element_bytes == 4 ? 26u : 46u);
      ASSERT_TRUE(done[i] || !fits) << wanted.pages[i].count << " parts";
      if (!done[i]) continue;
      ASSERT_EQ(read_back(client, wanted.pages[i].page), wanted.contents[i]) << i;
    }
    client.device->discard(sources.targets);
  }
  for (std::size_t i = 0; i < sources.numbers.size(); ++i)
    EXPECT_EQ(read_back(client, sources.numbers[i]), sources.contents[i]) << "sources stay";
}

TEST(ServerComposes, NothingOfPagesThatHoldNothing) {
  RunningServer server(small_server());
  Client client(server->port());
  Sources sources(client, 1);
  client.device->discard({&sources.numbers[1], 1});
  std::vector<ComposedPart> parts;
  std::vector<ComposedPage> pages;
  for (FarPage from : {sources.numbers[0], sources.numbers[1], FarPage{4000}, FarPage{std::uint64_t{1} << 36}}) {
    pages.push_back({sources.targets[parts.size()], static_cast<std::uint32_t>(parts.size()), 1});
    parts.push_back({from, 0, kPageSize});
  }
  pages.push_back({FarPage{std::uint64_t{1} << 36}, 0, 1});
  pages.push_back({sources.targets[7], 0, 0});
  std::array<bool, 6> done{};
  ASSERT_EQ(client.device->compose(0, pages, parts, done.data()), 0);
  EXPECT_EQ(done, (std::array<bool, 6>{true, false, false, false, false, false}));
}

TEST(ServerComposes, NotWhereItWasToldNotTo) {
  ServerOptions options = small_server();
  options.compute = false;
  RunningServer server(options);
  Client client(server->port());
  EXPECT_FALSE(client.device->composes());
  RawClient raw(server->port());
  auto request = wire::make_compose_request(wire::compose_field(1, 0), 1, 7);
  std::vector<std::byte> body(request.length);
  EXPECT_FALSE(raw.ask(request, body)) << "cut";
}

TEST(ServerComposes, AClientWhoseServerDiedIsTold) {
  ServerProcess server(small_server());
  Client client(server.port(), settings_with("", 2'000'000'000));
  Sources sources(client, 1);
  const ComposedPart part{sources.numbers[0], 0, kPageSize};
  const ComposedPage page{sources.targets[0], 0, 1};
  bool done = false;
  ASSERT_EQ(client.device->compose(0, {&page, 1}, {&part, 1}, &done), 0);
  ASSERT_TRUE(done);
  server.kill();
  done = false;
  EXPECT_NE(client.device->compose(0, {&page, 1}, {&part, 1}, &done), 0);
  EXPECT_FALSE(done);
}

// Pages that another connection writes meanwhile, and others that are composed by another thread.
TEST(ServerComposes, OthersWriteMeanwhile) {
  RunningServer server(small_server());
  Client client(server->port());
  Sources sources(client, 2);
  std::thread other([&] {
    auto channel = client.device->open_channel();
    ASSERT_TRUE(channel);
    for (int round = 0; round < 30; ++round) {
      std::vector<FarPage> mine(sources.targets.begin() + 200, sources.targets.end());
      EXPECT_EQ(far::testing::write_pages(**channel, mine, static_cast<std::uint64_t>(round)), 0);
      client.device->discard(mine);
    }
  });
  for (int round = 0; round < 30; ++round) {
    std::vector<ComposedPage> pages;
    std::vector<ComposedPart> parts;
    for (std::uint32_t i = 0; i < 200; ++i) {
      pages.push_back({sources.targets[i], i, 1});
      parts.push_back({sources.numbers[(i + static_cast<std::uint32_t>(round)) % Sources::kCount], 0, kPageSize});
    }
    std::array<bool, 200> done{};
    EXPECT_EQ(client.device->compose(0, pages, parts, done.data()), 0);
    EXPECT_TRUE(std::ranges::all_of(done, std::identity()));
    for (std::size_t i : {0u, 64u, 199u})
      EXPECT_EQ(read_back(client, sources.targets[i]),
                sources.contents[(i + static_cast<std::size_t>(round)) % Sources::kCount]);
    client.device->discard(std::span(sources.targets).first(200));
  }
  other.join();
}

TEST(ServerComposes, AForkedChildAsksOverAConnectionOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  ServerProcess server(small_server());
  Client client(server.port());
  Sources sources(client, 1);
  auto ask = [&](std::size_t target) {
    const ComposedPart part{sources.numbers[target], 0, kPageSize};
    const ComposedPage page{sources.targets[target], 0, 1};
    bool done = false;
    return client.device->compose(0, {&page, 1}, {&part, 1}, &done) == 0 && done;
  };
  ASSERT_TRUE(ask(0));
  pid_t child = ::fork();
  if (child == 0) {
    bool fine = client.device->after_fork_in_child().has_value();
    for (std::size_t i = 1; i < 20; ++i) fine = fine && ask(i);
    ::_exit(fine ? 0 : 1);
  }
  for (std::size_t i = 20; i < 40; ++i) EXPECT_TRUE(ask(i));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(read_back(client, sources.targets[i]), sources.contents[i]);
}

// --- by hand

class ComposeByHand : public PagesByHand {
 protected:
  wire::Piece piece(std::uint16_t offset = 0, std::uint16_t bytes = 4096) const {
    return {std::uint64_t{3}, checksum_, offset, bytes, 0u};
  }
  // The status of the answer.
  std::uint32_t ask(std::vector<wire::PageNumber> pages, std::vector<wire::Piece> pieces, std::uint64_t stamp = 100,
                    std::uint32_t element = 0, std::vector<std::byte> masks = {}) {
    auto header = wire::make_compose_request(wire::compose_field(static_cast<std::uint32_t>(pages.size()), element),
                                             static_cast<std::uint16_t>(pieces.size()), 7);
    header.stamp = stamp;
    std::vector<std::byte> body;
    for (auto bytes :
         {std::as_bytes(std::span(pages)), std::as_bytes(std::span(pieces)), std::span<const std::byte>(masks)})
      body.insert(body.end(), bytes.begin(), bytes.end());
    return PagesByHand::ask(header, body, wire::echo_of(pages, pieces));
  }
};

TEST_F(ComposeByHand, TellsTheChecksumOfWhatItWrote) {
  ASSERT_EQ(ask({8u, 9u}, {piece(0, 2048), piece(100, 100), piece(), piece(0, 1948)}), 0u);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0], checksum_);
  EXPECT_EQ(told_[1], checksum_);
  EXPECT_EQ(read(8), ones_);
  EXPECT_EQ(read(9), ones_);
}

TEST_F(ComposeByHand, RefusesWhatMakesNoSenseAndLivesOn) {
  EXPECT_EQ(ask({8u}, {piece(0, 2048)}), kBadRequest) << "half a page";
  EXPECT_EQ(ask({8u}, {piece(), piece(0, 1)}), kBadRequest) << "more than a page";
  EXPECT_EQ(ask({8u, 8u}, {piece(), piece()}), kBadRequest) << "the same page twice";
  EXPECT_EQ(ask({3u}, {piece()}), kBadRequest) << "over its own source";
  std::vector<std::byte> mask(64, std::byte{255});
  EXPECT_EQ(ask({8u}, {piece(4, 4088)}, 100, 8, mask), kBadRequest) << "half an element";
  EXPECT_EQ(ask({8u}, {piece(8, 4088)}, 100, 8, mask), kBadRequest) << "an element behind the last";
  mask[63] = std::byte{127};
  EXPECT_EQ(ask({8u}, {piece()}, 100, 8, mask), kBadRequest) << "an element too few";
  EXPECT_EQ(read(8), PageBuffer()) << "nothing was written";
  mask[63] = std::byte{255};
  EXPECT_EQ(ask({8u}, {piece()}, 100, 8, mask), 0u) << "the session lives";
}

TEST_F(ComposeByHand, RefusesPagesOfOthersAndOtherPages) {
  wire::Piece other = piece();
  other.page = std::uint64_t{far::kSlabPages} + 3;
  EXPECT_EQ(ask({8u}, {other}), kNotYours);
  EXPECT_EQ(ask({std::uint64_t{far::kSlabPages} + 8}, {piece()}), kNotYours);
  other = piece(), other.checksum = checksum_ + 1;
  EXPECT_EQ(ask({8u, 9u}, {piece(), other}), kDamaged);
  EXPECT_EQ(read(8), PageBuffer()) << "all of a message, or nothing";
  other = piece(), other.page = 4u;
  EXPECT_EQ(ask({8u}, {other}), kDamaged) << "never written";
  EXPECT_EQ(ask({8u}, {piece()}), 0u);
}

TEST_F(ComposeByHand, EndsConnectionsThatBreakTheProtocol) {
  EXPECT_EQ(ask({8u}, {piece(4000, 4096)}), kCut) << "beyond the page: no client of ours says that";
}

TEST_F(ComposeByHand, EndsConnectionsThatNamePagesBeyondAll) {
  EXPECT_EQ(ask({wire::kPageNumbers}, {piece()}), kCut);
}

// Sent again after a reconnect, when the page has been given away and written anew.
TEST_F(ComposeByHand, WhatWasWrittenLaterStays) {
  PageBuffer twos;
  twos.bytes.fill(2);
  const wire::PageNumber number{8u};
  std::vector<std::byte> body(sizeof number + kPageSize);
  std::memcpy(body.data(), &number, sizeof number);
  std::memcpy(body.data() + sizeof number, twos.bytes.data(), kPageSize);
  auto write = wire::make_request(wire::Type::write, 1, 2);
  write.stamp = 200u;
  ASSERT_EQ(status_of(client_.ask(write, body)), 0u);
  ASSERT_EQ(ask({8u}, {piece()}, 199), 0u);
  EXPECT_EQ(read(8), twos);
  ASSERT_EQ(ask({8u}, {piece()}, 201), 0u);
  EXPECT_EQ(read(8), ones_);
  // A discard of before that comes late.
  auto discard = wire::make_request(wire::Type::discard, 1, 3);
  discard.stamp = 200u;
  const wire::Run run{8u, 1u, 0u};
  ASSERT_EQ(status_of(client_.ask(discard, wire::bytes_of(run))), 0u);
  EXPECT_EQ(read(8), ones_);
}

// It goes in the middle of what it asked for, on several connections.
TEST_F(ComposeByHand, AClientThatGoesIsForgotten) {
  std::vector<wire::PageNumber> pages;
  std::vector<wire::Piece> pieces(wire::kPagesMax, piece());
  for (std::uint64_t page = 100; page < 100 + wire::kPagesMax; ++page) pages.emplace_back(page);
  auto header = wire::make_compose_request(wire::compose_field(wire::kPagesMax, 0), wire::kPagesMax, 7);
  std::vector<std::byte> message;
  for (auto bytes : {wire::bytes_of(header), std::as_bytes(std::span(pages)), std::as_bytes(std::span(pieces))})
    message.insert(message.end(), bytes.begin(), bytes.end());
  for (std::uint64_t name = 2; name < 6; ++name) {
    RawClient going(server_->port(), client_.token(), name);
    for (int i = 0; i < 20; ++i) going.send(message);
  }
  EXPECT_EQ(ask({8u}, {piece()}), 0u);
  EXPECT_TRUE(within(kSurelyNs, [&] { return server_->stats().connections == 1u; }));
}

}  // namespace
}  // namespace hinterland::testing
