// What the server computes: the same as its client would, nothing on pages that are not the client's or not what the
// client wrote, clear refusals of what makes no sense, and nobody else waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "far/tcp/shared_pages.hpp"
#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

namespace elements = hl::far::detail;
using far::Piece;

constexpr hl_computation kSumOf64{elements::sum, elements::u64, 0, 0, 0};

// Pages of random bytes, at a server and here.
struct Pages {
  Pages(Client& client, std::size_t count, std::uint64_t seed) : contents(count) {
    std::mt19937_64 random(seed);
    for (PageBuffer& page : contents)
      for (std::size_t at = 0; at < kPageSize; at += 8) {
        // Small and large numbers, equal ones, and as floating-point numbers some that are none.
        std::uint64_t word = random() % 4 == 0 ? random() : random() % 16;
        if (random() % 64 == 0) word = 0x7ff8'0000'7fc0'0000;
        std::memcpy(&page.bytes[at], &word, 8);
      }
    numbers = far::testing::pages_of_slab(client.slab(), 0, static_cast<std::uint32_t>(count));
    std::vector<far::Request> writes;
    for (std::size_t i = 0; i < count; ++i)
      writes.push_back({far::Operation::write, numbers[i], contents[i].bytes.data(), 0});
    for (int error : far::testing::run_to_end(*client.channel, writes)) EXPECT_EQ(error, 0);
  }
  std::vector<PageBuffer> contents;
  std::vector<FarPage> numbers;
};

// What must come out for these pieces.
std::vector<std::byte> computed_here(const hl_computation& what, const Pages& pages,
                                     const std::vector<Piece>& pieces) {
  std::vector<std::byte> results(elements::result_bytes(what.operation, pieces.size()));
  std::size_t step = what.operation == elements::spread ? 0 : elements::result_bytes(what.operation, 1);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto index = static_cast<std::size_t>(std::ranges::find(pages.numbers, pieces[i].page) - pages.numbers.begin());
    elements::compute_piece(what, &pages.contents[index].bytes[pieces[i].offset], pieces[i].bytes,
                            results.data() + i * step);
  }
  return results;
}

hl_computation any_computation(std::mt19937_64& random) {
  for (;;) {
    hl_computation what{static_cast<std::uint16_t>(1 + random() % 8), static_cast<std::uint16_t>(1 + random() % 6),
                        static_cast<std::uint16_t>(random() % 7), static_cast<std::uint16_t>(random() % 8 * 8),
                        random() % 3 * 5};
    if (what.operation != elements::count && what.operation != elements::filter) what.relation = 0;
    if (what.operation != elements::spread) what.shift = 0;
    if (elements::is_valid(what)) return what;
  }
}

std::vector<Piece> any_pieces(std::mt19937_64& random, const hl_computation& what, const Pages& pages) {
  std::vector<Piece> pieces(1 + random() % 300);
  std::size_t size = elements::element_bytes(what.element);
  for (Piece& piece : pieces) {
    std::size_t first = random() % 2 == 0 ? 0 : random() % (kPageSize / size);
    std::size_t most = kPageSize / size - first, count = random() % 2 == 0 ? most : 1 + random() % most;
    if (what.operation == elements::pick) count = 1;
    piece = {pages.numbers[random() % pages.numbers.size()], static_cast<std::uint16_t>(first * size),
             static_cast<std::uint16_t>(count * size)};
  }
  return pieces;
}

TEST(ServerComputes, WhatTheClientWouldCompute) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  RunningServer server(small_server());
  Client client(server->port());
  ASSERT_EQ(client.device->operations(), elements::operations_known);
  Pages pages(client, 100, seed);
  for (int round = 0; round < 300; ++round) {
    hl_computation what = any_computation(random);
    std::vector<Piece> pieces = any_pieces(random, what, pages);
    std::vector<std::byte> results(elements::result_bytes(what.operation, pieces.size()));
    auto done = std::make_unique<bool[]>(pieces.size());
    ASSERT_EQ(client.device->compute(what, pieces, results.data(), done.get()), 0);
    EXPECT_TRUE(std::all_of(done.get(), done.get() + pieces.size(), [](bool each) { return each; }));
    ASSERT_EQ(results, computed_here(what, pages, pieces))
        << "operation " << what.operation << " of element " << what.element << ", relation " << what.relation;
  }
  EXPECT_GT(server->stats().pages_computed, 300u);
  EXPECT_EQ(server->stats().pages_read, 0u);
}

TEST(ServerComputes, NothingOnPagesThatHoldNothing) {
  RunningServer server(small_server());
  Client client(server->port());
  Pages pages(client, 3, 1);
  client.device->discard({&pages.numbers[1], 1});
  std::vector<Piece> pieces;
  for (FarPage page : pages.numbers) pieces.push_back({page, 0, 4096});
  pieces.push_back({{7}, 0, 4096});  // never written
  pieces.push_back({{std::uint64_t{1} << 36}, 0, 4096});
  std::array<elements::partial, 5> results{};
  std::array<bool, 5> done{};
  ASSERT_EQ(client.device->compute(kSumOf64, pieces, reinterpret_cast<std::byte*>(results.data()), done.data()), 0);
  EXPECT_EQ(done, (std::array<bool, 5>{true, false, true, false, false}));
}

TEST(ServerComputes, NotWhereItWasToldNotTo) {
  ServerOptions options = small_server();
  options.compute = false;
  RunningServer server(options);
  Client client(server->port());
  EXPECT_EQ(client.device->operations(), 0u);
  RawClient raw(server->port());
  auto request = wire::make_compute_request(elements::sum, 1, 7);
  std::vector<std::byte> body(request.length);
  EXPECT_FALSE(raw.ask(request, body)) << "cut";
}

TEST(ServerComputes, AClientWhoseServerDiedIsTold) {
  ServerProcess server(small_server());
  Client client(server.port(), settings_with("", 2'000'000'000));
  Pages pages(client, 1, 1);
  Piece piece{pages.numbers[0], 0, 4096};
  elements::partial result{};
  bool done = false;
  ASSERT_EQ(client.device->compute(kSumOf64, {&piece, 1}, reinterpret_cast<std::byte*>(&result), &done), 0);
  ASSERT_TRUE(done);
  server.kill();
  done = false;
  EXPECT_NE(client.device->compute(kSumOf64, {&piece, 1}, reinterpret_cast<std::byte*>(&result), &done), 0);
  EXPECT_FALSE(done);
}

TEST(ServerComputes, AServerThatStoodStillIsAskedAgainLater) {
  ServerProcess server(small_server());
  Client client(server.port(), settings_with("", 500'000'000));
  Pages pages(client, 1, 1);
  auto ask = [&] {
    Piece piece{pages.numbers[0], 0, 4096};
    elements::partial result{};
    bool done = false;
    client.device->compute(kSumOf64, {&piece, 1}, reinterpret_cast<std::byte*>(&result), &done);
    return done;
  };
  ASSERT_TRUE(within(kSurelyNs, ask));
  server.freeze();
  EXPECT_FALSE(ask());
  server.thaw();
  EXPECT_TRUE(within(kSurelyNs, ask));
  EXPECT_EQ(client.device->lost(), 0);
}

TEST(ServerComputes, AForkedChildAsksOverAConnectionOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  ServerProcess server(small_server());
  Client client(server.port());
  Pages pages(client, 1, 1);
  Piece piece{pages.numbers[0], 0, 4096};
  auto right = computed_here(kSumOf64, pages, {piece});
  auto ask = [&] {
    std::vector<std::byte> result(sizeof(elements::partial));
    bool done = false;
    return client.device->compute(kSumOf64, {&piece, 1}, result.data(), &done) == 0 && done && result == right;
  };
  ASSERT_TRUE(ask());
  pid_t child = ::fork();
  if (child == 0) {
    bool fine = client.device->after_fork_in_child().has_value();
    for (int i = 0; i < 100; ++i) fine = fine && ask();
    ::_exit(fine ? 0 : 1);
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ask());
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// --- by hand
// ----------------------------------------------------------------------------------------------------------

void put(std::vector<std::byte>& message, std::span<const std::byte> bytes) {
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// A session with one slab, whose page 3 holds ones.
class ComputeByHand : public ::testing::Test {
 protected:
  void SetUp() override {
    ones_.bytes.fill(1);
    checksum_ = far::SharedPages::checksum_of(ones_.bytes.data());
    write_first_page(client_, 3, ones_);
  }
  // The status of the answer; 999: the server hung up.
  std::uint32_t ask(std::uint32_t operation, wire::ComputeRequest request, wire::Piece piece) {
    std::vector<std::byte> body;
    for (auto bytes : {wire::bytes_of(request), wire::bytes_of(piece)})
      body.insert(body.end(), bytes.begin(), bytes.end());
    auto reply = client_.ask(wire::make_compute_request(operation, 1, 7), body);
    if (!reply) return 999;
    result_.resize(reply->length);
    EXPECT_TRUE(result_.empty() || client_.receive(result_));
    EXPECT_EQ(reply->id, 7u);
    EXPECT_EQ(reply->stamp, wire::echo_of(std::span<const wire::Piece>(&piece, 1)));
    return reply->status;
  }
  wire::Piece piece(std::uint16_t offset = 0, std::uint16_t bytes = 4096) const {
    return {std::uint64_t{3}, checksum_, offset, bytes, 0u};
  }
  static wire::ComputeRequest of(elements::element element, std::uint16_t relation = 0, std::uint16_t shift = 0,
                                 std::uint64_t operand = 0) {
    return {std::uint16_t{element}, relation, shift, std::uint16_t{0}, operand};
  }
  static constexpr auto kBadRequest = static_cast<std::uint32_t>(wire::Code::bad_request);

  RunningServer server_{small_server()};
  RawClient client_{server_->port()};
  PageBuffer ones_;
  std::uint64_t checksum_ = 0;
  std::vector<std::byte> result_;
};

TEST_F(ComputeByHand, RefusesWhatMakesNoSenseAndLivesOn) {
  using namespace elements;
  EXPECT_EQ(ask(sum, of(element{0}), piece()), kBadRequest) << "no such element";
  EXPECT_EQ(ask(sum, of(element{7}), piece()), kBadRequest);
  EXPECT_EQ(ask(sum, of(u64, less), piece()), kBadRequest) << "a sum compares nothing";
  EXPECT_EQ(ask(sum, of(u64, 0, 0, 1), piece()), kBadRequest);
  EXPECT_EQ(ask(sum, of(u64, 0, 8), piece()), kBadRequest);
  EXPECT_EQ(ask(elements::count, of(u64), piece()), kBadRequest) << "how is it to compare?";
  EXPECT_EQ(ask(elements::count, of(u64, 7), piece()), kBadRequest);
  EXPECT_EQ(ask(spread, of(u64, 0, 64), piece()), kBadRequest) << "no such digit";
  EXPECT_EQ(ask(spread, of(u32, 0, 32), piece()), kBadRequest);
  EXPECT_EQ(ask(spread, of(u32, 0, 4), piece()), kBadRequest);
  EXPECT_EQ(ask(sum, of(u64), piece(4)), 999u) << "beyond the page: no client of ours says that";
}

TEST_F(ComputeByHand, RefusesHalfElements) {
  using namespace elements;
  EXPECT_EQ(ask(sum, of(u64), piece(0, 4)), kBadRequest);
  EXPECT_EQ(ask(sum, of(u64), piece(4, 8)), kBadRequest);
  EXPECT_EQ(ask(sum, of(u32), piece(2, 4)), kBadRequest);
  EXPECT_EQ(ask(pick, of(u32), piece(0, 8)), kBadRequest);
  EXPECT_EQ(ask(sum, of(u32), piece(4, 8)), 0u) << "the session lives";
  partial all{};
  ASSERT_EQ(result_.size(), sizeof all);
  std::memcpy(&all, result_.data(), sizeof all);
  EXPECT_EQ(all.low, 2u * 0x01010101u);
  EXPECT_EQ(all.high, 0u);
}

TEST_F(ComputeByHand, RefusesPagesOfOthersAndOtherPages) {
  using namespace elements;
  wire::Piece other = piece();
  other.page = std::uint64_t{far::kSlabPages} + 3;
  EXPECT_EQ(ask(sum, of(u64), other), kNotYours);
  other = piece(), other.checksum = checksum_ + 1;
  EXPECT_EQ(ask(sum, of(u64), other), static_cast<std::uint32_t>(wire::Code::damaged));
  other = piece(), other.page = 4u;
  EXPECT_EQ(ask(sum, of(u64), other), static_cast<std::uint32_t>(wire::Code::damaged)) << "never written";
  EXPECT_EQ(ask(sum, of(u64), piece()), 0u);
}

// One client asks for much and reads no answer, on as many connections as there are threads, and more.
TEST_F(ComputeByHand, OthersAreServedMeanwhile) {
  auto header = wire::make_compute_request(elements::distinct, wire::kPagesMax, 7);
  std::vector<std::byte> message;
  put(message, wire::bytes_of(header));
  put(message, wire::bytes_of(of(elements::u64)));
  for (int i = 0; i < wire::kPagesMax; ++i) put(message, wire::bytes_of(piece()));
  std::vector<std::unique_ptr<RawClient>> greedy;
  for (std::uint64_t name = 2; name < 8; ++name) {
    greedy.push_back(std::make_unique<RawClient>(server_->port(), client_.token(), name));
    for (int i = 0; i < 20; ++i) greedy.back()->send(message);
  }
  Client other(server_->port());
  Pages pages(other, 50, 3);
  for (int round = 0; round < 10; ++round) {
    std::vector<PageBuffer> back(pages.numbers.size());
    std::vector<far::Request> reads;
    for (std::size_t i = 0; i < back.size(); ++i)
      reads.push_back({far::Operation::read, pages.numbers[i], back[i].bytes.data(), 0});
    for (int error : far::testing::run_to_end(*other.channel, reads)) EXPECT_EQ(error, 0);
    EXPECT_EQ(back, pages.contents);
  }
  Piece mine{pages.numbers[0], 0, 4096};
  elements::partial result{};
  bool done = false;
  EXPECT_EQ(other.device->compute(kSumOf64, {&mine, 1}, reinterpret_cast<std::byte*>(&result), &done), 0);
  EXPECT_TRUE(done) << "its turn comes";
}

// More than it will ever read answers of; then it goes, in the middle of what was asked.
TEST_F(ComputeByHand, AClientThatGoesIsForgotten) {
  using namespace elements;
  wire::Piece mine = piece();
  wire::ComputeRequest request = of(u64);
  std::vector<std::byte> message;
  auto header = wire::make_compute_request(filter, wire::kPagesMax, 7);
  request.relation = std::uint16_t{less};
  put(message, wire::bytes_of(header));
  put(message, wire::bytes_of(request));
  for (int i = 0; i < wire::kPagesMax; ++i) put(message, wire::bytes_of(mine));
  for (int client = 0; client < 4; ++client) {
    RawClient going(server_->port(), client_.token(), 2u + static_cast<unsigned>(client));
    for (int i = 0; i < 20; ++i) going.send(message);
  }
  EXPECT_EQ(ask(sum, of(u64), piece()), 0u);
  EXPECT_TRUE(within(kSurelyNs, [&] { return server_->stats().connections == 1u; }));
}

}  // namespace
}  // namespace hinterland::testing
