// Objects that are read without their page: whatever comes in the place of one is noticed, the page is asked then,
// and the bytes on the wire.
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/stats.hpp"
#include "object/test_support.hpp"
#include "object/testing/damaging_device.hpp"
#include "object/testing/far_place.hpp"
#include "object/testing/objects_model.hpp"
#include "object/testing/placed.hpp"

namespace hinterland::object::testing {
namespace {

// --- a page or a part

TEST(PageOrPart, WhoReadsHereAndThereGetsParts) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  PageOrPart<64> choice;
  int pages = 0;
  // 2000 pages of 56 objects: some hundred times the next is a neighbour of one of the last.
  for (int i = 0; i < 100'000; ++i)
    pages += choice.wants_page({random() % 2000}, static_cast<std::uint32_t>(random() % 56 * 72), 72);
  EXPECT_LT(pages, 100);
}

TEST(PageOrPart, WhoGoesFromNeighbourToNeighbourGetsPages) {
  for (const bool upwards : {true, false}) {
    PageOrPart<8> choice;
    int parts = 0;
    for (std::uint64_t page = 10; page < 20; ++page)
      for (std::uint32_t i = 0; i < 56; ++i)
        parts += !choice.wants_page({upwards ? page : 100 - page}, (upwards ? i : 55 - i) * 72, 72);
    EXPECT_EQ(parts, 2) << "of ten pages";
  }
}

TEST(PageOrPart, SeveralMayWalkAtATimeAndLeaveSomeOut) {
  PageOrPart<8> choice;
  int parts = 0;
  for (std::uint32_t i = 0; i < 56; i += 2)
    for (std::uint64_t page : {3u, 4u, 5u, 6u}) parts += !choice.wants_page({page}, i * 72, 72);
  EXPECT_EQ(parts, 4 * 2);
}

TEST(PageOrPart, TheSameOnceMoreIsNoWalk) {
  PageOrPart<8> choice;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(choice.wants_page({3}, 720, 72));
}

// --- the far log

// Objects of 64 bytes that lie two pages apart.
constexpr std::size_t kApart = 113;

class FarLogRanges : public ::testing::Test {
 protected:
  void open(const std::string& url = "mem:") {
    auto inner = far::open_device(url, {});
    ASSERT_TRUE(inner) << inner.error().what();
    auto made = std::make_unique<DamagingDevice>(std::move(*inner));
    device = made.get();
    auto log_made = FarLog::create(std::move(made), kGiB);
    ASSERT_TRUE(log_made) << log_made.error().what();
    log = std::move(*log_made);
    ASSERT_EQ(log->check_units(), 1u);
    writer = std::make_unique<FarWriter>(*log, std::move(*log->open_port()));
  }
  void TearDown() override { writer.reset(), log.reset(); }

  Placed place(std::uint64_t id, std::uint32_t units) { return testing::place(*writer, id, units); }
  std::vector<Placed> place_many(std::size_t count, std::uint32_t units = 8) {
    std::vector<Placed> all;
    for (std::uint64_t id = 0; id < count; ++id) all.push_back(place(id, units));
    EXPECT_EQ(writer->flush(), 0u);
    return all;
  }
  // 0: it is there. An error; or -1: other bytes were taken for it.
  int look(const Placed& placed) {
    std::vector<std::uint64_t> words(placed.units);
    const int error = log->read(placed.location, placed.units, reinterpret_cast<std::byte*>(words.data()));
    return error != 0 ? error : words == content_of(placed.id, placed.units) ? 0 : -1;
  }
  // The same of many together.
  std::vector<int> look_at_many(std::span<const Placed> placed) {
    std::vector<std::vector<std::uint64_t>> words;
    std::vector<FarLog::Wanted> wanted;
    for (const Placed& each : placed) words.emplace_back(each.units);
    for (std::size_t i = 0; i < placed.size(); ++i)
      wanted.push_back({placed[i].location, placed[i].units, reinterpret_cast<std::byte*>(words[i].data()), -1});
    log->read_many(wanted);
    std::vector<int> found;
    for (std::size_t i = 0; i < placed.size(); ++i)
      found.push_back(wanted[i].error != 0                                    ? wanted[i].error
                      : words[i] == content_of(placed[i].id, placed[i].units) ? 0
                                                                              : -1);
    return found;
  }
  void free_all(std::span<const Placed> all) {
    for (const Placed& each : all) log->free(each.location, each.units);
  }

  DamagingDevice* device = nullptr;  // the log's
  std::unique_ptr<FarLog> log;
  std::unique_ptr<FarWriter> writer;
};

// What a device may give in the place of a part of a page.
class Damage {
 public:
  static constexpr int kKinds = 5;
  Damage(int kind, std::uint64_t seed) : kind_(kind), random_(seed) {}

  bool operator()(const far::Request& request) {
    std::lock_guard lock(mutex_);
    auto* const bytes = static_cast<unsigned char*>(request.buffer);
    std::vector<unsigned char> right(bytes, bytes + request.bytes);
    switch (kind_) {
      case 0:
        bytes[random_() % request.bytes] ^= static_cast<unsigned char>(1u << random_() % 8);
        break;
      case 1:
        std::fill_n(bytes, request.bytes, 0);
        break;
      case 2:  // another object's record, whole and right, of the same size
        if (auto& other = others_[request.bytes]; !other.empty()) std::copy(other.begin(), other.end(), bytes);
        break;
      case 3:  // those of one place further on
        std::rotate(bytes, bytes + 8 % request.bytes, bytes + request.bytes);
        break;
      default:
        for (std::size_t i = 0; i < request.bytes; ++i) bytes[i] = static_cast<unsigned char>(random_());
    }
    const bool changed = !std::equal(right.begin(), right.end(), bytes);
    others_[request.bytes] = std::move(right);
    return changed;
  }

 private:
  const int kind_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::map<std::uint32_t, std::vector<unsigned char>> others_;  // that came last, by size
};

TEST_F(FarLogRanges, WhateverComesInThePlaceOfARecordThePageIsAsked) {
  for (int kind = 0; kind < Damage::kKinds; ++kind) {
    SCOPED_TRACE(kind);
    open();
    std::vector<Placed> all = place_many(8000);
    auto damage = std::make_shared<Damage>(kind, 7);
    auto damaged = std::make_shared<std::size_t>(0);
    device->damage = [=](const far::Request& request) {
      const bool changed = !request.whole() && (*damage)(request);
      return *damaged += changed, changed;
    };
    for (std::size_t i = 0; i < all.size(); i += kApart) ASSERT_EQ(look(all[i]), 0) << i;
    EXPECT_GE(*damaged, 50u);
    EXPECT_GE(log->pages_read(), *damaged);
    std::vector<Placed> some;
    for (std::size_t i = 5; i < all.size(); i += kApart) some.push_back(all[i]);
    const std::size_t before = *damaged;
    for (const int found : look_at_many(some)) ASSERT_EQ(found, 0);
    EXPECT_GE(*damaged, before + some.size() - 1);
    free_all(all);
    TearDown();
  }
}

TEST_F(FarLogRanges, WhereThePageIsDamagedTooItIsAnError) {
  for (int kind = 0; kind < Damage::kKinds; ++kind) {
    SCOPED_TRACE(kind);
    open();
    std::vector<Placed> all = place_many(8000);
    auto damage = std::make_shared<Damage>(kind, 7);
    device->damage = [=](const far::Request& request) { return (*damage)(request); };
    static_cast<void>(look(all[0])), static_cast<void>(look(all[7000]));  // the first has no other to be taken for
    for (std::size_t i = kApart; i < all.size(); i += kApart) ASSERT_EQ(look(all[i]), EBADMSG) << i;
    device->damage = nullptr;
    for (std::size_t i = kApart; i < all.size(); i += kApart)
      ASSERT_EQ(look(all[i]), 0) << "it is not kept that it failed";
    free_all(all);
    TearDown();
  }
}

// The same bytes at the same place of the same block, and even of the same page, but of another time.
TEST_F(FarLogRanges, ARecordOfAnotherTimeIsNoticed) {
  open();
  std::map<Location, std::vector<unsigned char>> before;
  Location asked = 0;
  bool keeps = true;
  std::size_t stale = 0;
  device->damage = [&](const far::Request& request) {
    if (request.whole()) return false;
    auto* const bytes = static_cast<unsigned char*>(request.buffer);
    if (keeps) before[asked].assign(bytes, bytes + request.bytes);
    const auto kept = before.find(asked);
    if (keeps || kept == before.end()) return false;
    // The same object, of the same size, at the same place: nothing but the check tells.
    EXPECT_EQ(std::memcmp(bytes + kUnit, kept->second.data() + kUnit, 64), 0);
    EXPECT_NE(std::memcmp(bytes, kept->second.data(), kUnit), 0);
    std::copy(kept->second.begin(), kept->second.end(), bytes);
    return ++stale, true;
  };
  const auto look_at = [&](const Placed& each) {
    asked = each.location;
    return look_at_many({&each, 1})[0];
  };
  const auto place_twins = [&] {
    std::vector<Placed> all;
    for (int i = 0; i < 500; ++i) all.push_back(place(5, 8));
    EXPECT_EQ(writer->flush(), 0u);
    return all;
  };
  const std::vector<Placed> first = place_twins();
  for (const Placed& each : first) ASSERT_EQ(look_at(each), 0);
  free_all(first);
  keeps = false;
  const std::vector<Placed> second = place_twins();
  const std::uint64_t pages = log->pages_read();
  for (const Placed& each : second) ASSERT_EQ(look_at(each), 0);
  EXPECT_GT(stale, 300u) << "the numbers of blocks are used again";
  EXPECT_GT(log->pages_read(), pages) << "it was noticed, and the page asked";
  free_all(second);
}

TEST_F(FarLogRanges, MuchOfAPageIsReadAsAPage) {
  open();
  std::vector<Placed> all = place_many(56 * 10), large = place_many(20, 256);
  for (std::size_t page = 0; page < 8; ++page)
    for (const int found : look_at_many(std::span(all).subspan(56 * page, 56))) ASSERT_EQ(found, 0);
  EXPECT_EQ(log->parts_read(), 0u);
  EXPECT_EQ(log->pages_read(), 8u);
  std::vector<Placed> here_and_there;
  for (std::size_t i = 0; i < all.size(); i += 11) here_and_there.push_back(all[i]);
  const std::uint64_t pages = log->pages_read();
  for (const int found : look_at_many(here_and_there)) ASSERT_EQ(found, 0);
  EXPECT_EQ(log->parts_read(), here_and_there.size());
  EXPECT_EQ(log->pages_read(), pages);
  ASSERT_EQ(look(large[7]), 0);
  EXPECT_EQ(log->pages_read(), pages + 1) << "half of a page and more";
  free_all(all), free_all(large);
}

TEST_F(FarLogRanges, WhoReadsOneAfterTheOtherReadsPages) {
  open();
  std::vector<Placed> all = place_many(56 * 40);
  for (const Placed& each : all) ASSERT_EQ(look(each), 0);
  EXPECT_LE(log->parts_read(), 4u);
  EXPECT_LE(log->pages_read(), log->pages_held());
  free_all(all);
}

// --- the wire

// Of what TCP carries, in both directions, over all connections of a device.
std::uint64_t bytes_on_the_wire(const far::Device& device) {
  std::array<int, 256> all;
  std::uint64_t bytes = 0;
  for (const int descriptor : std::span(all).first(device.descriptors(all.data(), all.size()))) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    EXPECT_GE(size, offsetof(tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent);
    bytes += info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_bytes_received;
  }
  return bytes;
}

std::uint64_t counted_bytes_in() { return stat_page()->counters[Counter::object_bytes_in]; }

TEST_F(FarLogRanges, ObjectsOf64BytesCostSomewhatMoreThan64BytesOnTheWire) {
  const FarPlace place_of("tcp:");
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  open(place_of.url);
  std::vector<Placed> all = place_many(60'000);
  std::mt19937_64 random(seed);
  // Per byte used, over `together` at a time.
  auto cost = [&](std::size_t together) {
    ASSERT_EQ(look(all[0]), 0);  // the connection is there
    const std::uint64_t before = bytes_on_the_wire(*device), counted = counted_bytes_in();
    std::size_t read = 0;
    for (int round = 0; round < 200; ++round, read += together) {
      std::vector<Placed> some;
      for (std::size_t i = 0; i < together; ++i) some.push_back(all[random() % all.size()]);
      for (const int found : look_at_many(some)) ASSERT_EQ(found, 0);
    }
    EXPECT_EQ(counted_bytes_in() - counted, read * 72);
    const double each = static_cast<double>(bytes_on_the_wire(*device) - before) / static_cast<double>(read * 64);
    // 64 bytes of headers a message, 8 of the request and 8 of the check for each.
    EXPECT_NEAR(each, (64.0 / static_cast<double>(together) + 8 + 8 + 64) / 64, 0.02) << together << " at a time";
    if (together >= 32) {
      EXPECT_LE(each, 1.3);
    }
    RecordProperty("wire_bytes_per_byte_" + std::to_string(together), std::to_string(each));
  };
  for (const std::size_t together : {1u, 8u, 32u, 64u}) cost(together);
  free_all(all);
}

// --- objects

// Threads with objects of four sizes over tcp:, while one part in fifty and one page in fifty comes back as something
// else: what is taken for an object is that object.
void run_damaged_model(const std::string& kind, int steps) {
  const FarPlace place(kind);
  auto inner = far::open_device(place.url, {});
  ASSERT_TRUE(inner) << inner.error().what();
  auto device = std::make_unique<DamagingDevice>(std::move(*inner));
  std::vector<std::shared_ptr<Damage>> kinds;
  for (int each = 0; each < Damage::kKinds; ++each) kinds.push_back(std::make_shared<Damage>(each, 3));
  auto reads = std::make_shared<std::atomic<std::uint64_t>>(0);
  auto parts = std::make_shared<std::atomic<std::uint64_t>>(0);
  device->damage = [=](const far::Request& request) {
    const std::uint64_t number = (*reads)++;
    if (number % 50 != 0) return false;
    const bool changed = (*kinds[number / 50 % kinds.size()])(request);
    *parts += changed && !request.whole();
    return changed;
  };
  hl::far::throw_when_lost(true);
  {
    HeapForTest heap(std::move(device), HeapOptions::kLocalBytesMin, 2);
    run_objects_model(heap, steps);
    EXPECT_GT(heap->far().parts_read(), 100u);
  }
  hl::far::throw_when_lost(false);
  EXPECT_GT(parts->load(), 10u);
}

TEST(HeapRangesModel, OverDamagedMemory) { run_damaged_model("mem:", 40'000); }
TEST(HeapRangesModel, OverDamagedTcp) { run_damaged_model("tcp:", 40'000); }

// The server dies in the midst: what comes is right until then, and after it nothing does.
TEST(HeapRangesModel, AServerThatDiesLosesObjectsAndGivesNoOthers) {
  FarPlace place("tcp:");
  hl::far::throw_when_lost(true);
  {
    HeapForTest heap(place.url);
    std::vector<hl::far::ptr<Known<64>>> items;
    for (std::uint64_t i = 0; i < 150'000; ++i) items.push_back(make_known<64>(i));
    ASSERT_TRUE(wait_until_left(10'000));
    std::atomic<std::size_t> wrong{0}, right{0}, lost{0};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 3; ++thread)
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(thread);
        while (lost < 100) {
          const std::size_t at = random() % items.size();
          try {
            const bool holds = items[at].read().holds(at);
            wrong += !holds;
            right += holds;
          } catch (const hl::far::object_lost&) {
            ++lost;
          }
        }
      });
    while (right < 20'000) sched_yield();
    place.server->kill();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_GT(heap->far().parts_read(), 100u);
  }
  hl::far::throw_when_lost(false);
}

}  // namespace
}  // namespace hinterland::object::testing
