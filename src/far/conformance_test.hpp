// The conformance suite of far devices: what every device must do (device.hpp), whatever is behind it.
//
// A device's test program includes this and instantiates the suite with a way to open the device:
//
//     INSTANTIATE_TEST_SUITE_P(Mem, DeviceConformance, ::testing::Values(DeviceUnderTest{"mem", open_it}),
//                              device_name);
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include "far/test_support.hpp"

namespace hinterland::far::testing {

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::function<void()> lose;     // makes the device lost (kills its server, ...); empty when it cannot be lost
  std::shared_ptr<void> context;  // whatever must live as long as the device; destroyed after it
};

struct DeviceUnderTest {
  std::string name;  // letters and digits
  // Opens a new device with room for exactly `slabs` slabs. An Error with code ENOTSUP skips the test: its text says
  // what this machine lacks.
  std::function<Result<OpenedDevice>(std::uint32_t slabs)> open;
  friend void PrintTo(const DeviceUnderTest& device, std::ostream* out) { *out << device.name; }
};

inline std::string device_name(const ::testing::TestParamInfo<DeviceUnderTest>& info) { return info.param.name; }

class DeviceConformance : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Opens the device with one slab taken and one channel; false when the test ends here.
  void open(std::uint32_t slabs = 4) {
    auto result = GetParam().open(slabs);
    if (!result && result.error().code() == ENOTSUP) GTEST_SKIP() << result.error().what();
    ASSERT_TRUE(result) << result.error().what();
    opened = std::move(*result);
    channel = new_channel();
    ASSERT_NE(channel, nullptr);
    auto taken = device().allocate_slab();
    ASSERT_TRUE(taken) << taken.error().what();
    slab = *taken;
  }
  void TearDown() override {
    channel.reset();
    opened.device.reset();
  }
  Device& device() { return *opened.device; }
  std::unique_ptr<Channel> new_channel() {
    auto result = device().open_channel();
    EXPECT_TRUE(result) << result.error().what();
    return result ? std::move(*result) : nullptr;
  }
  std::vector<FarPage> pages(std::uint32_t first, std::uint32_t count) { return pages_of_slab(slab, first, count); }

  OpenedDevice opened;
  std::unique_ptr<Channel> channel;
  std::uint32_t slab = 0;
};

#define HL_OPEN_OR_END(...)                       \
  do {                                            \
    open(__VA_ARGS__);                            \
    if (IsSkipped() || HasFatalFailure()) return; \
  } while (0)

TEST_P(DeviceConformance, DescribesItself) {
  HL_OPEN_OR_END();
  const DeviceInfo& info = device().info();
  EXPECT_FALSE(info.url.empty());
  EXPECT_GE(info.in_flight_max, 1u);
  EXPECT_GE(info.best_batch_pages, 1u);
  EXPECT_LE(info.best_batch_pages, info.in_flight_max);
  EXPECT_TRUE(info.capacity_bytes == 0 || info.capacity_bytes == 4 * kSlabBytes) << info.capacity_bytes;
  EXPECT_EQ(info.synchronous, channel->event_descriptor() == -1);
  EXPECT_EQ(device().lost(), 0);
}

TEST_P(DeviceConformance, ListsItsDescriptors) {
  HL_OPEN_OR_END();
  std::array<int, 64> listed;
  auto lists = [&](int descriptor) {
    auto end = listed.begin() + static_cast<long>(device().descriptors(listed.data(), listed.size()));
    return std::find(listed.begin(), end, descriptor) != end;
  };
  std::size_t count = device().descriptors(listed.data(), listed.size());
  for (int descriptor : std::span(listed).first(count)) {
    EXPECT_EQ(fcntl(descriptor, F_GETFD), FD_CLOEXEC) << descriptor;
    EXPECT_GT(descriptor, 255) << "shells use the numbers below";
  }
  EXPECT_EQ(device().descriptors(listed.data(), 1), std::min<std::size_t>(count, 1));
  int event = channel->event_descriptor();
  if (event < 0) return;
  EXPECT_TRUE(lists(event));
  channel.reset();
  EXPECT_FALSE(lists(event));
  EXPECT_LT(device().descriptors(listed.data(), listed.size()), count);
}

TEST_P(DeviceConformance, ReadsBackWhatWasWritten) {
  HL_OPEN_OR_END();
  auto all = pages(0, 300);
  EXPECT_EQ(write_pages(*channel, all, 1000), 0);
  EXPECT_EQ(count_wrong(*channel, all, 1000), 0);
  EXPECT_EQ(count_wrong(*channel, all, 1000), 0) << "a page is read any number of times";
  EXPECT_EQ(channel->in_flight(), 0u);
}

TEST_P(DeviceConformance, TakesScatteredPagesAndBuffersOfAnyAlignment) {
  HL_OPEN_OR_END();
  std::vector<std::uint32_t> order = {4095, 0, 17, 18, 19, 4000, 16, 1};
  std::vector<unsigned char> odd(order.size() * (kPageSize + 24) + 1);
  std::vector<Request> writes, reads;
  for (std::size_t i = 0; i < order.size(); ++i) {
    unsigned char* buffer = &odd[1 + i * (kPageSize + 24)];
    std::memcpy(buffer, page_content(order[i]).bytes.data(), kPageSize);
    writes.push_back({Operation::write, pages(order[i], 1)[0], buffer, 0});
    reads.push_back({Operation::read, pages(order[i], 1)[0], buffer, 0});
  }
  EXPECT_EQ(run_to_end(*channel, writes), std::vector<int>(order.size(), 0));
  std::fill(odd.begin(), odd.end(), 0);
  EXPECT_EQ(run_to_end(*channel, reads), std::vector<int>(order.size(), 0));
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(std::memcmp(&odd[1 + i * (kPageSize + 24)], page_content(order[i]).bytes.data(), kPageSize), 0) << i;
  EXPECT_EQ(odd[0] | odd[kPageSize + 1] | odd.back(), 0) << "nothing outside the buffers is written";
}

// Of parts of pages, at any place in memory: where the device knows them, those bytes and no others; else a refusal
// that touches nothing.
TEST_P(DeviceConformance, ReadsPartsOfPagesWhereItKnowsThem) {
  HL_OPEN_OR_END();
  constexpr std::uint32_t kPages = 50;
  constexpr std::size_t kStride = kPageSize + 3;
  ASSERT_EQ(write_pages(*channel, pages(0, kPages), 60), 0);
  std::mt19937_64 random(test_seed());
  std::vector<Request> requests;
  std::vector<unsigned char> memory(200 * kStride, 0xee);
  for (std::size_t i = 0; i < 200; ++i) {
    const auto offset = static_cast<std::uint16_t>(random() % kPageSize);
    auto bytes = static_cast<std::uint16_t>(1 + random() % std::min<std::size_t>(kPageSize - offset, 90));
    if (i % 8 == 0) bytes = static_cast<std::uint16_t>(kPageSize - offset);  // to the end
    const FarPage page = pages(static_cast<std::uint32_t>(random() % kPages), 1)[0];
    requests.push_back({Operation::read, page, &memory[i * kStride], 0, offset, bytes});
    if (i % 10 == 9) requests.back() = {Operation::read, page, &memory[i * kStride], 0};  // pages between them
  }
  const auto errors = run_to_end(*channel, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& each = requests[i];
    const bool reads = device().info().ranges || each.whole();
    ASSERT_EQ(errors[i], reads ? 0 : EINVAL) << i;
    const PageBuffer content = page_content(60 + each.page.page_in_slab());
    const std::size_t written = reads ? each.bytes : 0;
    EXPECT_EQ(std::memcmp(&memory[i * kStride], content.bytes.data() + each.offset, written), 0) << i;
    EXPECT_TRUE(std::all_of(&memory[i * kStride + written], &memory[(i + 1) * kStride - 1] + 1,
                            [](unsigned char byte) { return byte == 0xee; }))
        << i << ": nothing behind it is written";
  }
}

TEST_P(DeviceConformance, RefusesWhatIsNoPartOfAPage) {
  HL_OPEN_OR_END();
  ASSERT_EQ(write_pages(*channel, pages(0, 2), 0), 0);
  std::array<unsigned char, 2 * kPageSize> memory;
  memory.fill(0xee);
  const FarPage page = pages(0, 1)[0], other_slab{std::uint64_t{3} * kSlabPages}, never_written = pages(9, 1)[0];
  const std::vector<Request> bad = {
      {Operation::read, page, memory.data(), 0, 0, 0},
      {Operation::read, page, memory.data(), 0, 4095, 2},
      {Operation::read, page, memory.data(), 0, 1, kPageSize},
      {Operation::read, page, memory.data(), 0, 0, kPageSize + 1},
      {Operation::read, page, memory.data(), 0, 65535, 65535},
      {Operation::write, page, memory.data(), 0, 0, 8},
      {Operation::read, other_slab, memory.data(), 0, 0, 8},
      {Operation::read, never_written, memory.data(), 0, 0, 8},
  };
  for (int error : run_to_end(*channel, bad)) EXPECT_GT(error, 0);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](unsigned char byte) { return byte == 0xee; }));
  EXPECT_EQ(device().lost(), 0);
  EXPECT_EQ(count_wrong(*channel, pages(0, 2), 0), 0);
}

TEST_P(DeviceConformance, OneChannelReadsWhatAnotherWrote) {
  HL_OPEN_OR_END();
  auto second = new_channel();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(write_pages(*channel, pages(0, 40), 5), 0);
  EXPECT_EQ(count_wrong(*second, pages(0, 40), 5), 0);
  channel.reset();
  EXPECT_EQ(count_wrong(*second, pages(0, 40), 5), 0) << "pages outlive the channel that wrote them";
}

TEST_P(DeviceConformance, TakesUpToItsLimitAndMoreAfterAPoll) {
  HL_OPEN_OR_END();
  auto all = pages(0, 4);
  EXPECT_EQ(write_pages(*channel, all, 0), 0);
  std::uint32_t limit = device().info().in_flight_max;
  std::vector<PageBuffer> buffers(limit + 1);
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i <= limit; ++i) requests.push_back({Operation::read, all[i % 4], &buffers[i], i});
  std::uint32_t taken = 0;
  for (int took = 1; took > 0; taken += static_cast<std::uint32_t>(took)) {
    took = channel->submit(std::span(requests).subspan(taken));
    ASSERT_GE(took, 0);
  }
  EXPECT_EQ(taken, limit);
  EXPECT_EQ(channel->in_flight(), limit);
  std::array<Completion, 1> one;
  std::uint64_t end = now_ns() + 10'000'000'000;
  while (channel->poll(one) == 0 && now_ns() < end) channel->wait(1'000'000);
  EXPECT_EQ(channel->in_flight(), limit - 1);
  EXPECT_EQ(channel->submit(std::span(requests).subspan(limit)), 1);
  for (std::uint32_t left = limit; left > 0 && now_ns() < end;) {
    int count = channel->poll(one);
    if (count == 0) channel->wait(1'000'000);
    left -= static_cast<std::uint32_t>(count);
  }
  EXPECT_EQ(channel->in_flight(), 0u);
  EXPECT_EQ(buffers[limit], page_content(limit % 4));
}

TEST_P(DeviceConformance, SaysWhenItIsFullAndGoesOnAfterARelease) {
  HL_OPEN_OR_END(3);
  std::vector<std::uint32_t> slabs = {slab};
  for (int i = 0; i < 2; ++i) {
    auto more = device().allocate_slab();
    ASSERT_TRUE(more) << more.error().what();
    slabs.push_back(*more);
  }
  std::sort(slabs.begin(), slabs.end());
  EXPECT_EQ(slabs, (std::vector<std::uint32_t>{0, 1, 2})) << "numbers are dense from 0";
  auto beyond = device().allocate_slab();
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), ENOSPC);
  EXPECT_EQ(write_pages(*channel, pages(0, 8), 1), 0) << "a full device still serves";
  device().release_slab(1);
  auto again = device().allocate_slab();
  ASSERT_TRUE(again) << again.error().what();
  EXPECT_EQ(*again, 1u);
  EXPECT_EQ(write_pages(*channel, pages_of_slab(1, 0, 8), 2), 0);
  EXPECT_EQ(count_wrong(*channel, pages_of_slab(1, 0, 8), 2), 0);
}

TEST_P(DeviceConformance, DiscardedPagesAreWrittenAnew) {
  HL_OPEN_OR_END();
  auto all = pages(0, 200);
  EXPECT_EQ(write_pages(*channel, all, 0), 0);
  std::uint64_t full = device().usage().used_bytes;
  EXPECT_EQ(full, 200 * kPageSize);
  device().discard(std::span(all).first(150));
  EXPECT_EQ(device().usage().used_bytes, 50 * kPageSize);
  EXPECT_EQ(count_wrong(*channel, std::span(all).subspan(150), 150), 0) << "others stay";
  EXPECT_EQ(write_pages(*channel, std::span(all).first(150), 777), 0);
  EXPECT_EQ(count_wrong(*channel, std::span(all).first(150), 777), 0);
  EXPECT_EQ(device().usage().used_bytes, full);
  device().discard(all);
  device().discard(all);  // again: nothing happens
  EXPECT_EQ(device().usage().used_bytes, 0u);
}

TEST_P(DeviceConformance, AReleasedSlabForgetsItsPages) {
  HL_OPEN_OR_END();
  EXPECT_EQ(write_pages(*channel, pages(0, 100), 0), 0);
  device().release_slab(slab);
  EXPECT_EQ(device().usage().used_bytes, 0u);
  PageBuffer buffer;
  EXPECT_NE(run_one(*channel, Operation::read, pages(0, 1)[0], &buffer), 0) << "the slab is not ours any more";
}

TEST_P(DeviceConformance, OneBadRequestLeavesTheOthersAlone) {
  HL_OPEN_OR_END();
  std::vector<PageBuffer> buffers(6);
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < 6; ++i) {
    buffers[i] = page_content(i);
    requests.push_back({Operation::write, pages(i, 1)[0], &buffers[i], 0});
  }
  requests[2].page = {std::uint64_t{3} * kSlabPages + 5};  // a slab that was not allocated
  requests[4].page = {std::uint64_t{1} << 39};             // a slab that does not exist
  auto errors = run_to_end(*channel, requests);
  for (std::size_t i : {0u, 1u, 3u, 5u}) EXPECT_EQ(errors[i], 0) << i;
  for (std::size_t i : {2u, 4u}) EXPECT_GT(errors[i], 0) << i;
  EXPECT_EQ(device().lost(), 0);
  EXPECT_EQ(count_wrong(*channel, pages(0, 2), 0), 0);
}

TEST_P(DeviceConformance, DirectPagesShowTheBytes) {
  HL_OPEN_OR_END();
  EXPECT_EQ(write_pages(*channel, pages(7, 5), 40), 0);
  for (std::uint32_t i = 0; i < 5; ++i) {
    const void* memory = device().direct_page(pages(7 + i, 1)[0]);
    ASSERT_EQ(memory != nullptr, device().info().direct);
    if (memory != nullptr) {
      EXPECT_EQ(std::memcmp(memory, page_content(40 + i).bytes.data(), kPageSize), 0) << i;
    }
  }
}

TEST_P(DeviceConformance, PollAndWaitDoNotHang) {
  HL_OPEN_OR_END();
  std::array<Completion, 4> none;
  std::uint64_t start = now_ns();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(channel->poll(none), 0);
  channel->wait(5'000'000);
  EXPECT_EQ(channel->poll({}), 0);
  EXPECT_EQ(channel->submit({}), 0);
  EXPECT_LT(now_ns() - start, 2'000'000'000u) << "nothing was in flight";
}

TEST_P(DeviceConformance, TheDescriptorBecomesReadable) {
  HL_OPEN_OR_END();
  if (device().info().synchronous) GTEST_SKIP() << "synchronous: there is nothing to wait for";
  PageBuffer buffer;
  for (int round = 0; round < 20; ++round) {
    buffer = page_content(static_cast<std::uint64_t>(round));
    Request write{Operation::write, pages(static_cast<std::uint32_t>(round), 1)[0], &buffer, 9};
    ASSERT_EQ(channel->submit({&write, 1}), 1);
    std::array<Completion, 1> done;
    std::uint64_t end = now_ns() + 10'000'000'000;
    int count = 0;
    while (count == 0 && now_ns() < end) {
      pollfd waiting{channel->event_descriptor(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 5000), 1) << "round " << round;
      count = channel->poll(done);
    }
    ASSERT_EQ(count, 1);
    EXPECT_EQ(done[0].error, 0);
  }
}

TEST_P(DeviceConformance, ManyThreadsEachWithAChannel) {
  HL_OPEN_OR_END();
  constexpr std::uint32_t kThreads = 4;
  std::uint64_t seed = test_seed();
  std::array<std::atomic<int>, kThreads> wrong{};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto mine = new_channel();
      auto own_slab = device().allocate_slab();
      std::uint32_t use = own_slab ? *own_slab : slab;  // 4 threads, 3 slabs left: one shares, on pages of its own
      std::mt19937_64 random(seed + t);
      for (int round = 0; round < 15; ++round) {
        auto first = t * 1000 + static_cast<std::uint32_t>(random() % 900);
        auto some = pages_of_slab(use, first, 1 + static_cast<std::uint32_t>(random() % 60));
        std::uint64_t id = random() % 1'000'000;
        wrong[t] += write_pages(*mine, some, id);
        wrong[t] += count_wrong(*mine, some, id);
        device().discard(some);
      }
    });
  for (auto& thread : threads) thread.join();
  for (auto& count : wrong) EXPECT_EQ(count, 0) << "HINTERLAND_TEST_SEED=" << seed;
  EXPECT_EQ(device().usage().used_bytes, 0u);
}

// The child reads the parent's pages, writes pages of its own, and lets one of the parent's go; exit status 0 when
// all of that went well.
inline int child_of_fork(Device& device, std::unique_ptr<Channel>& parents, std::uint32_t slab) {
  if (!device.after_fork_in_child()) return 1;
  parents.release();  // dropped without being used: it is the parent's
  auto channel = device.open_channel();
  if (!channel) return 2;
  if (count_wrong(**channel, pages_of_slab(slab, 0, 100), 50) != 0) return 3;
  auto own = device.allocate_slab();
  if (!own || *own == slab) return 4;
  if (write_pages(**channel, pages_of_slab(*own, 0, 100), 90) != 0) return 5;
  if (count_wrong(**channel, pages_of_slab(*own, 0, 100), 90) != 0) return 6;
  device.discard(pages_of_slab(slab, 99, 1));
  return 10 + static_cast<int>(*own);
}

TEST_P(DeviceConformance, AForkedChildSharesTheSlabs) {
  HL_OPEN_OR_END();
  EXPECT_EQ(write_pages(*channel, pages(0, 100), 50), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(child_of_fork(device(), channel, slab));
  EXPECT_EQ(count_wrong(*channel, pages(0, 99), 50), 0) << "the parent works on meanwhile";
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  ASSERT_GE(WEXITSTATUS(status), 10) << "the step that failed in the child";
  auto childs = static_cast<std::uint32_t>(WEXITSTATUS(status) - 10);
  EXPECT_EQ(count_wrong(*channel, pages_of_slab(childs, 0, 100), 90), 0) << "the parent reads what the child wrote";
  EXPECT_EQ(write_pages(*channel, pages(99, 1), 3), 0) << "the page that the child discarded is free";
  EXPECT_EQ(count_wrong(*channel, pages(99, 1), 3), 0);
  auto next = device().allocate_slab();
  ASSERT_TRUE(next);
  EXPECT_NE(*next, childs);
}

TEST_P(DeviceConformance, WhenItIsLostEverythingEndsWithAnError) {
  HL_OPEN_OR_END();
  if (!opened.lose) GTEST_SKIP() << "this device cannot be lost";
  EXPECT_EQ(write_pages(*channel, pages(0, 16), 0), 0);
  std::vector<PageBuffer> buffers(16);
  std::vector<Request> reads;
  for (std::uint32_t i = 0; i < 16; ++i) reads.push_back({Operation::read, pages(i, 1)[0], &buffers[i], i});
  opened.lose();
  auto errors = run_to_end(*channel, reads);
  for (int error : errors) EXPECT_NE(error, -1) << "a request was taken and never completed";
  errors = run_to_end(*channel, reads);
  for (int error : errors) EXPECT_GT(error, 0);
  EXPECT_NE(device().lost(), 0);
  EXPECT_EQ(channel->in_flight(), 0u);
  auto more = device().allocate_slab();
  EXPECT_FALSE(more);
}

}  // namespace hinterland::far::testing
