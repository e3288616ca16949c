// What is particular to zmem: ratios, pages that do not compress, memory given back.
#include "far/zmem_device.hpp"

#include <gtest/gtest.h>

#include "far/compressor.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

class Zmem : public ::testing::TestWithParam<Codec> {
 protected:
  void SetUp() override {
    auto opened = open_zmem_device({GetParam(), 64 * kMiB});
    ASSERT_TRUE(opened) << opened.error().what();
    device = std::move(*opened);
    channel = std::move(*device->open_channel());
    slab = *device->allocate_slab();
  }
  void TearDown() override { channel.reset(); }
  // Writes 1024 pages whose contents have the given id % 4.
  DeviceUsage usage_with(std::uint64_t kind) {
    std::vector<PageBuffer> buffers(1024);
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < 1024; ++i) {
      buffers[i] = page_content(kind + 4 * std::uint64_t{i});
      requests.push_back({Operation::write, pages_of_slab(slab, i, 1)[0], &buffers[i], 0});
    }
    for (int error : run_to_end(*channel, requests)) EXPECT_EQ(error, 0);
    DeviceUsage usage = device->usage();
    EXPECT_EQ(usage.used_bytes, 1024 * kPageSize);
    for (std::uint32_t i = 0; i < 1024; ++i) {
      PageBuffer back;
      EXPECT_EQ(run_one(*channel, Operation::read, pages_of_slab(slab, i, 1)[0], &back), 0);
      EXPECT_EQ(back, buffers[i]) << i;
    }
    return usage;
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Channel> channel;
  std::uint32_t slab = 0;
};

TEST_P(Zmem, IncompressiblePagesTakeWhatTheyAre) {
  DeviceUsage usage = usage_with(0);
  EXPECT_EQ(usage.stored_bytes, usage.used_bytes) << "stored as they are, nothing added";
}
TEST_P(Zmem, TextIsCompressed) {
  DeviceUsage usage = usage_with(1);
  EXPECT_LT(usage.stored_bytes, usage.used_bytes / 2);
}
TEST_P(Zmem, PagesOfOneByteTakeNoSpace) { EXPECT_EQ(usage_with(2).stored_bytes, 0u); }

TEST_P(Zmem, DiscardGivesTheMemoryBack) {
  usage_with(0);
  device->discard(pages_of_slab(slab, 0, 1024));
  EXPECT_EQ(device->usage().used_bytes, 0u);
  EXPECT_LE(device->usage().stored_bytes, 2 * kMiB) << "a few empty blocks stay ready";
}

TEST_P(Zmem, AWrittenPageMayBeWrittenAgainWithoutALeak) {
  PageBuffer buffer = page_content(0);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(run_one(*channel, Operation::write, pages_of_slab(slab, 0, 1)[0], &buffer), 0);
  EXPECT_EQ(device->usage().used_bytes, kPageSize);
  EXPECT_LE(device->usage().stored_bytes, 64 * kKiB);
}

TEST_P(Zmem, APageNeverWrittenIsAnErrorNotZeros) {
  PageBuffer buffer;
  EXPECT_EQ(run_one(*channel, Operation::read, pages_of_slab(slab, 9, 1)[0], &buffer), ENODATA);
}

TEST_P(Zmem, DamagedBytesAreFoundOrDecodeToAPageAndNeverMore) {
  auto compressor = std::move(*Compressor::create(GetParam()));
  std::uint64_t seed = test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    PageBuffer page = page_content(1 + 4 * (random() % 8));
    std::array<unsigned char, kPageSize> bytes;
    std::uint32_t length = compressor->compress(&page, bytes.data(), 4032);
    ASSERT_NE(length, 0u);
    bytes[random() % length] ^= static_cast<unsigned char>(1 + random() % 255);
    auto guarded = std::make_unique<std::array<PageBuffer, 2>>();
    (*guarded)[1].bytes.fill(0x5a);
    compressor->decompress(bytes.data(), static_cast<std::uint32_t>(1 + random() % length), &(*guarded)[0]);
    for (unsigned char byte : (*guarded)[1].bytes) ASSERT_EQ(byte, 0x5a);
  }
}

std::string codec_name(const ::testing::TestParamInfo<Codec>& info) {
  return info.param == Codec::lz4 ? "lz4" : "zstd";
}
INSTANTIATE_TEST_SUITE_P(Codecs, Zmem, ::testing::Values(Codec::lz4, Codec::zstd), codec_name);

}  // namespace
}  // namespace hinterland::far::testing
