// Pages on two devices, one of which is lost, full, or added while others work
// (docs/adr/0030-a-device-for-a-region.md).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::uint32_t kPages = 512, kSecond = kPages / 2;  // from here on pages go to the second device
using Second = MachineOptions::Second;

MachineOptions options(Second second, bool direct) {
  MachineOptions options;
  options.policy = &kSecondChancePolicy;
  options.second = second;
  options.direct = direct;
  return options;
}

class TwoDevices : public ::testing::TestWithParam<std::pair<Second, bool>> {
 protected:
  void SetUp() override {
    machine_.map(0, kSecond, kReadWrite);
    machine_.map(kSecond, kSecond, kReadWrite);
  }
  void write(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t page = first; page < first + count; ++page) machine_.write(page);
  }
  void read(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t page = first; page < first + count; ++page) machine_.read(page);
  }
  void evict_all() {
    for (int round = 0; round < 100 && machine_.core().budget.local() > 0; ++round) machine_.evict(64);
  }
  std::uint32_t count(std::uint32_t first, std::uint32_t end, PageState state) {
    std::uint32_t found = 0;
    for (std::uint32_t page = first; page < end; ++page)
      found += machine_.core().pages[{page}].load().state() == state;
    return found;
  }

  PageMachine machine_{options(GetParam().first, GetParam().second), 1};
};

TEST_P(TwoDevices, PagesGoToTheirOwn) {
  write(0, kPages);
  evict_all();
  EXPECT_EQ(count(0, kPages, PageState::far), kPages);
  for (std::uint32_t page = 0; page < kPages; ++page)
    EXPECT_EQ(machine_.core().pages[{page}].load().far_page().device(), page >= kSecond) << page;
  EXPECT_EQ(machine_.device()->usage().used_bytes, bytes_of_pages(kSecond));
  EXPECT_EQ(machine_.second_device()->usage().used_bytes, bytes_of_pages(kSecond));
  EXPECT_EQ(machine_.check_invariants(0), "");
  read(0, kPages);  // a stream, with read-ahead over the border
  for (std::uint32_t page = kPages; page-- > 0;) machine_.read(page);
  machine_.hint({.address = machine_.address_of(kSecond - 9), .size = bytes_of_pages(18)});
  machine_.hint({.address = machine_.address_of(kSecond - 9), .read_ahead = 20});
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// A page that mremap took along stays where it is until it is written.
TEST_P(TwoDevices, MovedPagesAreFoundOnTheDeviceTheyWereWrittenTo) {
  write(kSecond, 64);
  evict_all();
  machine_.unmap(0, kSecond);
  machine_.remap(kSecond, 64, 64);  // to the first hole, or nowhere
  machine_.remap(kSecond, 64, 128);
  for (std::uint32_t page = 0; page < 64; ++page)
    if (machine_.pager().overlaps(machine_.address_of(page), 1)) machine_.adopt_all();
  EXPECT_EQ(machine_.check_invariants(0), "");
  evict_all();
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// I4 and I5: of a lost device what is local stays, what is not raises SIGBUS; everybody else pages as before, however
// many frames there were in which the lost one's pages are parked.
TEST_P(TwoDevices, OneIsLostAndTheOtherGoesOn) {
  for (bool first_is_lost : {false, true}) {
    SCOPED_TRACE(first_is_lost);
    PageMachine machine(options(GetParam().first, GetParam().second), 2);
    std::uint32_t lost = first_is_lost ? 0 : kSecond, other = first_is_lost ? kSecond : 0;
    machine.map(0, kPages, kReadWrite);
    for (std::uint32_t page = other; page < other + 128; ++page) machine.write(page);
    for (std::uint32_t page = lost; page < lost + 128; ++page) machine.write(page);
    machine.evict(48);
    FlakyDevice& device = first_is_lost ? *machine.device() : *machine.second_device();
    Core& core = machine.core();
    std::uint32_t away = 0, near = 0;
    for (std::uint32_t page = lost; page < lost + 128; ++page) {
      PageState state = core.pages[{page}].load().state();
      away += state == PageState::far;
      near += state == PageState::resident || state == PageState::parked;
    }
    ASSERT_GT(away, 10);
    ASSERT_GT(near, 10);
    device.faults.lost = ECONNRESET;
    for (int round = 0; round < 10; ++round)  // many times what there are frames
      for (std::uint32_t page = other; page < other + 128; ++page) machine.write(page);
    for (std::uint32_t page = other; page < other + 128; ++page) machine.read(page);
    EXPECT_EQ(machine.failure(), "");
    // As far as there is something else that can leave. (What was read out of a frame counts twice until the
    // reclaimer, which no thread is here, lets the frame go.)
    while (core.budget.free() < 0 && machine.reclaim(16) != 0) continue;
    EXPECT_LE(core.budget.local(), std::max<std::int64_t>(core.budget.limit(), near + 32));
    std::uint32_t seen = 0;
    for (std::uint32_t page = lost; page < lost + 128; ++page) {
      bool is_lost = core.pages[{page}].load().state() == PageState::far;
      seen += is_lost;
      if (!is_lost) machine.read(page);
    }
    EXPECT_EQ(seen, away);
  }
}

// Pages that nobody takes must not be what reclaim asks for again and again.
TEST_P(TwoDevices, OneIsFullAndTheOthersPagesLeave) {
  machine_.second_device()->faults.full = true;  // from the first page on
  write(kSecond, 64);
  write(0, 200);
  for (int round = 0; round < 5; ++round) {
    write(0, 200);
    EXPECT_LE(machine_.core().budget.local(), machine_.core().budget.limit() + 1) << round;
  }
  EXPECT_EQ(count(kSecond, kSecond + 64, PageState::resident), 64);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// The region's pages leave first by right: its share is 0.
TEST_P(TwoDevices, AFullDevicesRegionWithoutAShareDoesNotKeepTheOthers) {
  RegionOptions how{.share_bytes = 0, .device = 1};
  int pool = 0;
  machine_.unmap(kSecond, kSecond);
  machine_.parts().budget_bytes = bytes_of_pages(96);
  std::intptr_t address = machine_.pager().create_region(bytes_of_pages(80), how, &pool);
  ASSERT_GT(address, 0);
  const auto first =
      static_cast<std::uint32_t>(machine_.core().window.index_of(static_cast<std::uintptr_t>(address)).value);
  machine_.second_device()->faults.full = true;
  for (std::uint32_t page = first; page < first + 80; ++page) {
    ASSERT_TRUE(machine_.touch(page, true));
    machine_.kernel().store(machine_.address_of(page), &page, sizeof page);
  }
  write(0, 200);
  EXPECT_EQ(count(first, first + 80, PageState::resident), 80);
  EXPECT_LE(machine_.core().budget.local(), machine_.core().budget.limit() + 1);
}

// What is on its way arrives before anybody stands still.
TEST_P(TwoDevices, OneMoreIsAddedWhileOthersWork) {
  write(0, 64);
  evict_all();
  machine_.begin_hint({.address = machine_.address_of(0), .size = bytes_of_pages(16)});
  auto number = machine_.pager().open_device("zmem:");
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, 2);
  EXPECT_EQ(machine_.check_invariants(0), "");
  EXPECT_EQ(*machine_.pager().open_device("zmem:"), 2);
  EXPECT_EQ(*machine_.pager().open_device("mem:"), 0);
  auto wrong = machine_.pager().open_device("nonsense:");
  ASSERT_FALSE(wrong);
  EXPECT_NE(std::string(wrong.error().what()).find("nonsense"), std::string::npos);
  read(0, 64);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TwoDevices,
                         ::testing::Values(std::pair{Second::direct, true}, std::pair{Second::queued, true},
                                           std::pair{Second::direct, false}, std::pair{Second::queued, false}));

}  // namespace
}  // namespace hinterland::testing
