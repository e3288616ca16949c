// What tests of pages that the server makes (compose, patch) share.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "far/tcp/shared_pages.hpp"
#include "server/raw_client.hpp"

namespace hinterland::testing {

// Sources with random bytes, at a server and here; and pages beside them that hold nothing.
struct Sources {
  static constexpr std::uint32_t kCount = 50, kTargets = 300;

  Sources(Client& client, std::uint64_t seed) : contents(kCount) {
    std::mt19937_64 random(seed);
    for (PageBuffer& page : contents)
      for (unsigned char& byte : page.bytes) byte = static_cast<unsigned char>(random());
    const std::uint32_t slab = client.slab();
    numbers = far::testing::pages_of_slab(slab, 0, kCount);
    targets = far::testing::pages_of_slab(slab, 1000, kTargets);
    std::vector<far::Request> writes;
    for (std::size_t i = 0; i < kCount; ++i)
      writes.push_back({far::Operation::write, numbers[i], contents[i].bytes.data(), 0});
    for (int error : far::testing::run_to_end(*client.channel, writes)) EXPECT_EQ(error, 0);
  }
  std::vector<PageBuffer> contents;
  std::vector<FarPage> numbers, targets;
};

inline PageBuffer read_back(Client& client, FarPage page) {
  PageBuffer back;
  EXPECT_EQ(far::testing::run_to_end(*client.channel, {{far::Operation::read, page, back.bytes.data(), 0}})[0], 0);
  return back;
}

// A session with one slab, whose page 3 holds ones, for messages that are made by hand.
class PagesByHand : public ::testing::Test {
 protected:
  static constexpr auto kBadRequest = static_cast<std::uint32_t>(wire::Code::bad_request);
  static constexpr auto kDamaged = static_cast<std::uint32_t>(wire::Code::damaged);
  static constexpr std::uint32_t kCut = 999;

  void SetUp() override {
    ones_.bytes.fill(1);
    checksum_ = far::SharedPages::checksum_of(ones_.bytes.data());
    write_first_page(client_, 3, ones_);
  }
  // The status of the answer, whose checksums are in told_; kCut where there is none.
  std::uint32_t ask(const wire::Header& header, std::span<const std::byte> body, std::uint64_t echo) {
    auto reply = client_.ask(header, body);
    if (!reply) return kCut;
    told_.resize(reply->length / 8);
    EXPECT_TRUE(told_.empty() || client_.receive(std::as_writable_bytes(std::span(told_))));
    EXPECT_EQ(reply->id, header.id);
    EXPECT_EQ(reply->stamp, echo);
    return reply->status;
  }
  PageBuffer read(std::uint64_t page) {
    PageBuffer back;
    const wire::PageNumber number{page};
    EXPECT_EQ(status_of(client_.ask(wire::make_request(wire::Type::read, 1, 9), wire::bytes_of(number))), 0u);
    EXPECT_TRUE(client_.receive(std::as_writable_bytes(std::span(back.bytes))));
    return back;
  }

  RunningServer server_{small_server()};
  RawClient client_{server_->port()};
  PageBuffer ones_;
  std::uint64_t checksum_ = 0;
  std::vector<wire::Le<std::uint64_t>> told_;
};

}  // namespace hinterland::testing
