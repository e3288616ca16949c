// Several devices used as one: each page goes to its own, and what befalls one device is no matter to the others.
#include "far/devices.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "far/test_support.hpp"

namespace hinterland::far::testing {
namespace {

constexpr std::uint64_t kSpaceBytes = 8 * kSlabBytes;

// mem: that opens only so many channels.
class FewChannels final : public Device {
 public:
  explicit FewChannels(int channels) : channels_(channels), inner_(std::move(*open_device("mem:", {}))) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  DeviceUsage usage() const override { return inner_->usage(); }
  Result<std::uint32_t> allocate_slab() override { return inner_->allocate_slab(); }
  void release_slab(std::uint32_t slab) override { inner_->release_slab(slab); }
  void discard(std::span<const FarPage> pages) override { inner_->discard(pages); }
  Status after_fork_in_child() override { return inner_->after_fork_in_child(); }
  Result<std::unique_ptr<Channel>> open_channel() override {
    if (channels_-- <= 0) return std::unexpected(Error::make(ETIMEDOUT, "it does not answer"));
    return inner_->open_channel();
  }

 private:
  int channels_;
  std::unique_ptr<Device> inner_;
};

class DevicesTest : public ::testing::Test {
 protected:
  void open(const std::string& first) {
    devices = std::make_unique<Devices>(std::move(*open_device(first, {})), first);
    ASSERT_TRUE(devices->create_space(kSpaceBytes));
    channels = std::move(*devices->open_channels());
  }
  std::uint32_t add(const std::string& url) {
    auto number = devices->add(std::move(*open_device(url, {})), url);
    EXPECT_TRUE(number) << number.error().what();
    return number ? *number : 0;
  }
  std::vector<FarPage> take(std::uint32_t device, std::size_t count) {
    std::vector<FarPage> pages(count);
    int error = 0;
    pages.resize(devices->allocate(device, pages, &error));
    for (FarPage page : pages) EXPECT_EQ(page.device(), device);
    return pages;
  }
  // Of each device some, in turn and in runs.
  std::vector<FarPage> take_mixed(std::size_t runs) {
    std::vector<FarPage> pages;
    for (std::size_t i = 0; i < runs; ++i)
      for (FarPage page : take(static_cast<std::uint32_t>(i % devices->count()), 1 + i * 7 % 90))
        pages.push_back(page);
    return pages;
  }

  std::unique_ptr<Devices> devices;
  std::unique_ptr<Channels> channels;
};

TEST_F(DevicesTest, EachPageGoesToItsDevice) {
  open("mem:");
  EXPECT_EQ(add("zmem:"), 1);
  EXPECT_EQ(add("sim:latency=20us,inner=mem:"), 2);
  std::vector<FarPage> pages = take_mixed(40);
  EXPECT_EQ(write_pages(*channels, pages, 1), 0);
  EXPECT_EQ(count_wrong(*channels, pages, 1), 0);
  EXPECT_EQ(channels->in_flight(), 0);
  EXPECT_EQ(devices->pages_in_use(), pages.size());
  EXPECT_EQ(devices->usage().used_bytes, bytes_of_pages(pages.size()));
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (const void* bytes = devices->direct_page(pages[i])) {
      EXPECT_EQ(std::memcmp(bytes, page_content(1 + i).bytes.data(), kPageSize), 0) << i;
    }
  devices->release(pages);
  EXPECT_EQ(devices->pages_in_use(), 0);
  EXPECT_EQ(devices->usage().used_bytes, 0);
}

TEST_F(DevicesTest, WhetherAllAnswerAtOnceChangesWithTheFirstThatDoesNot) {
  open("mem:?size=64M");
  add("zmem:?size=64M");
  EXPECT_TRUE(devices->all_synchronous());
  EXPECT_EQ(devices->capacity_bytes(), 128 * kMiB);
  add("sim:latency=1us,inner=mem:");
  EXPECT_FALSE(devices->all_synchronous());
  EXPECT_TRUE(devices->synchronous(1));
  EXPECT_FALSE(devices->synchronous(2));
  EXPECT_EQ(devices->capacity_bytes(), 0);  // one is not limited
}

TEST_F(DevicesTest, AreFoundByTheUrlAsWritten) {
  open("zmem:");
  add("mem:");
  EXPECT_EQ(devices->find("zmem:"), 0);
  EXPECT_EQ(devices->find("zmem:lz4"), 0);  // what it says itself
  EXPECT_EQ(devices->find("mem:"), 1);
  EXPECT_EQ(devices->find("mem:?size=1G"), std::nullopt);
}

TEST_F(DevicesTest, ThereAreOnlySoMany) {
  open("mem:");
  for (std::uint32_t i = 1; i < kDevicesMax; ++i) EXPECT_EQ(add("zmem:"), i);
  std::vector<FarPage> pages = take_mixed(std::size_t{2} * kDevicesMax);
  EXPECT_EQ(write_pages(*channels, pages, 1), 0);
  auto one_more = devices->add(std::move(*open_device("mem:", {})), "mem:");
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code(), ENOSPC);
  EXPECT_EQ(count_wrong(*channels, pages, 1), 0);
}

TEST_F(DevicesTest, OneThatGivesNoChannelIsNotAdded) {
  open("mem:");
  auto others = std::move(*devices->open_channels());
  auto added = devices->add(std::make_unique<FewChannels>(1), "few");
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ETIMEDOUT);
  EXPECT_EQ(devices->count(), 1);
  EXPECT_EQ(devices->find("few"), std::nullopt);
  others.reset();  // who is gone needs none
  auto again = devices->add(std::make_unique<FewChannels>(1), "few");
  ASSERT_TRUE(again);
  EXPECT_FALSE(devices->open_channels());
  std::vector<FarPage> pages = take_mixed(6);
  EXPECT_EQ(write_pages(*channels, pages, 1), 0);
  EXPECT_EQ(count_wrong(*channels, pages, 1), 0);
}

// What is in flight on both is waited for, without looking all the time.
TEST_F(DevicesTest, WaitsForSeveral) {
  open("sim:latency=300us,inner=mem:");
  add("sim:latency=200ms,inner=mem:");
  std::vector<FarPage> pages = {take(0, 1)[0], take(1, 1)[0]};
  EXPECT_EQ(write_pages(*channels, pages, 1), 0);
  std::array<PageBuffer, 2> buffers;
  std::array<Request, 2> requests = {Request{Operation::read, pages[1], &buffers[1], 1},
                                     Request{Operation::read, pages[0], buffers.data(), 0}};
  ASSERT_EQ(channels->submit(requests), 2);
  std::array<pollfd, kDevicesMax> events;
  EXPECT_EQ(channels->events(events), 2);
  std::array<Completion, 4> done;
  std::vector<std::uint64_t> tags;
  unsigned looks = 0;
  for (; tags.size() < 2 && looks < 100; ++looks) {
    int count = channels->poll(done);
    for (int i = 0; i < count; ++i) {
      tags.push_back(done[static_cast<std::size_t>(i)].tag);
      EXPECT_EQ(done[static_cast<std::size_t>(i)].error, 0);
    }
    if (count == 0) channels->wait(1'000'000'000);
  }
  std::ranges::sort(tags);
  EXPECT_EQ(tags, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_LT(looks, 20);
  EXPECT_EQ(channels->in_flight(), 0);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(buffers[i], page_content(1 + i));
}

// A device that answers at once is never slept for behind one that does not.
TEST_F(DevicesTest, DoesNotSleepForWhatIsThere) {
  open("mem:");
  add("sim:latency=1000s,inner=mem:");  // longer than a test may take: whoever sleeps fails
  std::vector<FarPage> fast = take(0, 1), slow = take(1, 1);
  PageBuffer page = page_content(7), other = page;
  std::array<Request, 2> requests = {Request{Operation::write, slow[0], &other, 1},
                                     Request{Operation::write, fast[0], &page, 0}};
  ASSERT_EQ(channels->submit(requests), 2);
  channels->wait(1'000'000'000'000);
  std::array<Completion, 4> done;
  ASSERT_EQ(channels->poll(done), 1);
  EXPECT_EQ(done[0].tag, 0);
  EXPECT_EQ(channels->in_flight(), 1);
}

TEST_F(DevicesTest, OneIsLostAndTheOthersGoOn) {
  open("mem:");
  add("sim:latency=1us,lose_after=300,inner=mem:");
  std::vector<FarPage> fast = take(0, 100), lost = take(1, 200), both;
  EXPECT_EQ(write_pages(*channels, fast, 1), 0);
  EXPECT_EQ(write_pages(*channels, lost, 1000), 0);
  for (std::size_t i = 0; i < 200; ++i) both.push_back(i % 2 == 0 ? fast[i / 2] : lost[i]);
  EXPECT_GT(count_wrong(*channels, lost, 1000), 0);
  EXPECT_EQ(devices->lost(1), ECONNRESET);
  EXPECT_EQ(devices->lost(0), 0);
  EXPECT_TRUE(devices->some_lost());
  EXPECT_FALSE(devices->all_lost());
  std::vector<PageBuffer> buffers(both.size());
  std::vector<Request> requests;
  requests.reserve(both.size());
  for (std::size_t i = 0; i < both.size(); ++i) requests.push_back({Operation::read, both[i], &buffers[i], 0});
  std::vector<int> errors = run_to_end(*channels, requests);
  for (std::size_t i = 0; i < both.size(); ++i) {
    EXPECT_EQ(errors[i], both[i].device() == 0 ? 0 : ECONNRESET) << i;
    if (errors[i] == 0) {
      EXPECT_EQ(buffers[i], page_content(1 + i / 2));
    }
  }
}

TEST_F(DevicesTest, OneIsFullAndTheOthersAreNot) {
  open("mem:");
  add("mem:?size=16M");
  EXPECT_EQ(take(1, kSlabPages + 1).size(), kSlabPages);
  int error = 0;
  std::array<FarPage, 1> page;
  EXPECT_EQ(devices->allocate(1, page, &error), 0);
  EXPECT_EQ(error, ENOSPC);
  EXPECT_EQ(take(0, kSlabPages + 1).size(), kSlabPages + 1);
}

// Parent and child hold the same pages of each device; what is left when the child is gone is the parent's.
TEST_F(DevicesTest, AChildHasThePagesOfAll) {
  open("mem:");
  add("zmem:");
  devices->enter_process();
  std::vector<FarPage> pages = take_mixed(20);
  ASSERT_EQ(write_pages(*channels, pages, 1), 0);
  devices->begin_child();
  devices->retain(pages);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!devices->after_fork_in_child()) _exit(1);
    static_cast<void>(channels.release());  // the parent's
    devices->enter_process();
    auto own = devices->open_channels();
    if (!own || count_wrong(**own, pages, 1) != 0) _exit(2);
    std::vector<FarPage> more = take_mixed(10);
    if (write_pages(**own, more, 5000) != 0 || count_wrong(**own, more, 5000) != 0) _exit(3);
    devices->release(std::span(pages).first(30));
    _exit(0);  // and holds the others
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(devices->is_shared());
  while (devices->reap()) continue;
  EXPECT_EQ(devices->pages_in_use(), pages.size());
  EXPECT_EQ(count_wrong(*channels, pages, 1), 0);
  devices->release(pages);
  EXPECT_EQ(devices->pages_in_use(), 0);

  devices->begin_child();
  pages = take_mixed(4);
  devices->retain(pages);
  devices->cancel_child();
  devices->release(pages);
  EXPECT_EQ(devices->pages_in_use(), 0);
}

}  // namespace
}  // namespace hinterland::far::testing
