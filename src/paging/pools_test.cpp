// Which pages leave first: cold ones, then those of regions beyond their share; and regions as such.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"
#include "paging/testing/victims.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::uint32_t kOther = 256;  // a page that the window gives to no region, because it gives the first free

class Pools : public ::testing::Test {
 protected:
  void SetUp() override { machine_.parts().budget_bytes = bytes_of_pages(96); }
  static MachineOptions options() {
    MachineOptions options;
    options.policy = &kFifoPolicy;
    return options;
  }
  std::uint32_t resident(std::uint32_t first, std::uint32_t count) {
    std::uint32_t found = 0;
    for (std::uint32_t page = first; page < first + count; ++page)
      found += machine_.core().pages[{page}].load().state() == PageState::resident;
    return found;
  }
  // The next to leave, in order; they stay.
  std::vector<hl_page> victims(std::size_t count) {
    std::vector<hl_page> pages = victims_of(machine_.core().policy, count);
    for (hl_page page : pages) machine_.core().policy.arrived({page}, 1, HL_ARRIVAL_RETURNED);
    return pages;
  }
  void touch(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t page = first; page < first + count; ++page) {
      machine_.touch(page, true);
      machine_.kernel().store(machine_.address_of(page), &page, sizeof page);
    }
  }
  // The first page of a region of so many pages.
  std::uint32_t create(std::uint32_t pages, const RegionOptions& how, int* pool) {
    std::intptr_t address = machine_.pager().create_region(bytes_of_pages(pages), how, pool);
    EXPECT_GT(address, 0);
    return static_cast<std::uint32_t>(machine_.core().window.index_of(static_cast<std::uintptr_t>(address)).value);
  }
  void expect_invariants() {
    machine_.adopt_all();
    EXPECT_EQ(machine_.check_invariants(0), "");
  }

  PageMachine machine_{options(), 1};
};

// A policy that keeps what it is told of mappings; of the process and of regions alike.
std::vector<std::string> g_told;

hl_policy_ops telling_policy() {
  hl_policy_ops telling = kFifoPolicy;
  telling.mapped = [](void*, const hl_mapping* mapping) {
    g_told.push_back(std::string(mapping->tag) + " of kind " + std::to_string(mapping->kind) + ", " +
                     std::to_string(mapping->pages) + " pages at " + std::to_string(mapping->place));
  };
  telling.unmapped = [](void*, std::uint64_t place, std::uint64_t pages) {
    g_told.push_back("none, " + std::to_string(pages) + " pages at " + std::to_string(place));
  };
  return telling;
}
const hl_policy_ops kTellingPolicy = telling_policy();

TEST(PoolsOfATellingPolicy, HearTheTagsOfRegions) {
  MachineOptions options;
  options.policy = &kTellingPolicy;
  PageMachine machine(options, 1);
  machine.parts().budget_bytes = bytes_of_pages(96);
  auto place_of = [&](std::intptr_t address) {
    return std::to_string(machine.core().window.index_of(static_cast<std::uintptr_t>(address)).value);
  };
  g_told.clear();
  // One that is told apart, and one that is the process's but for its tag.
  const RegionOptions index{.share_bytes = bytes_of_pages(16), .tag = "index"};
  int pool = 0;
  std::intptr_t first = machine.pager().create_region(bytes_of_pages(32), index, &pool);
  std::intptr_t second = machine.pager().map(bytes_of_pages(16), kPageSize, kReadWrite, MAP_NORESERVE, 0,
                                             {HL_MAPPING_REGION, "scratch"});
  std::intptr_t third = machine.pager().map(bytes_of_pages(16), kPageSize, kReadWrite);
  ASSERT_GT(std::min({first, second, third}), 0);
  machine.pager().destroy_region(static_cast<std::uintptr_t>(first), bytes_of_pages(32), index, pool);
  machine.pager().unmap(static_cast<std::uintptr_t>(second), bytes_of_pages(16));
  std::vector<std::string> wanted{"index of kind 2, 32 pages at " + place_of(first),
                                  "scratch of kind 2, 16 pages at " + place_of(second),
                                  " of kind 0, 16 pages at " + place_of(third)};
  // All open pools hear that places are no longer mapped: the process's, and while there is one, the region's.
  wanted.insert(wanted.end(), 2, "none, 32 pages at " + place_of(first));
  wanted.push_back("none, 16 pages at " + place_of(second));
  EXPECT_EQ(g_told, wanted);
}

TEST_F(Pools, ColdPagesLeaveFirst) {
  machine_.map(0, 64, kReadWrite);
  for (std::uint32_t page = 0; page < 64; ++page) machine_.write(page);
  machine_.pager().cold(machine_.address_of(40), bytes_of_pages(8));
  machine_.pager().cold(machine_.address_of(40), bytes_of_pages(8));  // twice is once
  EXPECT_EQ(machine_.core().policy.size(), 64);
  EXPECT_EQ(victims(9), (std::vector<hl_page>{40, 41, 42, 43, 44, 45, 46, 47, 0}));
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// A list that is full is left alone until some of it has left; none of what is not noted is lost to the policy.
TEST(ColdPages, AThousandAreNoted) {
  constexpr auto kColdMax = static_cast<std::uint32_t>(PolicyHost::kColdMax);
  MachineOptions options;
  options.policy = &kFifoPolicy;
  options.window_pages = options.budget_pages = kColdMax + 512;
  PageMachine machine(options, 1);
  machine.parts().budget_bytes = bytes_of_pages(options.budget_pages);
  machine.map(0, kColdMax + 256, kReadWrite);
  for (std::uint32_t page = 0; page < kColdMax + 256; ++page) machine.write(page);
  PolicyHost& policy = machine.core().policy;
  machine.pager().cold(machine.address_of(100), bytes_of_pages(kColdMax - 10));
  EXPECT_EQ(policy.room_for_cold(), 10);
  machine.pager().cold(machine.address_of(0), bytes_of_pages(50));
  EXPECT_EQ(policy.room_for_cold(), 0);
  machine.pager().cold(machine.address_of(50), bytes_of_pages(10));
  EXPECT_EQ(policy.size(), kColdMax + 256);
  EXPECT_EQ(machine.check_invariants(0), "");

  const std::vector<hl_page> chosen = victims_of(policy, kColdMax + 1);
  ASSERT_EQ(chosen.size(), kColdMax + 1);
  EXPECT_EQ(chosen[0], 100);
  EXPECT_EQ(chosen[kColdMax - 1], 9);  // the last of those that there was room for
  EXPECT_EQ(chosen[kColdMax], 10);     // and the policy's own first
  for (hl_page page : chosen) policy.arrived({page}, 1, HL_ARRIVAL_RETURNED);
  EXPECT_EQ(policy.room_for_cold(), kColdMax);
  machine.pager().cold(machine.address_of(50), bytes_of_pages(10));
  EXPECT_EQ(policy.room_for_cold(), kColdMax - 10);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Whether a page is cold already is first asked of the end of its number: of pages with one end each is noted once,
// also after others have left or were freed.
TEST(ColdPages, WithOneEndAreToldApart) {
  constexpr auto kApart = static_cast<std::uint32_t>(4 * PolicyHost::kColdMax);
  constexpr auto kRoom = PolicyHost::kColdMax;
  MachineOptions options;
  options.policy = &kFifoPolicy;
  options.window_pages = kApart + 64;
  PageMachine machine(options, 1);
  PolicyHost& policy = machine.core().policy;
  machine.parts().budget_bytes = bytes_of_pages(96);
  for (std::uint32_t first : {0u, kApart}) {
    machine.map(first, 16, kReadWrite);
    for (std::uint32_t page = first; page < first + 16; ++page) machine.write(page);
  }
  for (int times = 0; times < 2; ++times)
    for (std::uint32_t first : {0u, kApart}) machine.pager().cold(machine.address_of(first), bytes_of_pages(8));
  EXPECT_EQ(policy.room_for_cold(), kRoom - 16);

  const std::vector<hl_page> chosen = victims_of(policy, 8);
  ASSERT_EQ(chosen.size(), 8);
  EXPECT_EQ(chosen[0], 0);
  for (hl_page page : chosen) policy.arrived({page}, 1, HL_ARRIVAL_RETURNED);
  machine.pager().cold(machine.address_of(kApart), bytes_of_pages(8));
  EXPECT_EQ(policy.room_for_cold(), kRoom - 8);
  machine.pager().cold(machine.address_of(0), bytes_of_pages(8));
  EXPECT_EQ(policy.room_for_cold(), kRoom - 16);

  machine.unmap(0, 4);
  machine.map(0, 4, kReadWrite);
  for (std::uint32_t page = 0; page < 4; ++page) machine.write(page);
  EXPECT_EQ(policy.room_for_cold(), kRoom - 12);
  machine.pager().cold(machine.address_of(0), bytes_of_pages(8));
  EXPECT_EQ(policy.room_for_cold(), kRoom - 16);
  EXPECT_EQ(policy.size(), 32);
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST_F(Pools, ColdPagesMayBeFreedMeanwhile) {
  machine_.map(0, 64, kReadWrite);
  for (std::uint32_t page = 0; page < 64; ++page) machine_.write(page);
  machine_.pager().cold(machine_.address_of(32), bytes_of_pages(16));
  machine_.unmap(40, 8);
  EXPECT_EQ(machine_.check_invariants(0), "");
  machine_.pager().cold(0, ~std::size_t{0});
  machine_.pager().cold(machine_.address_of(500), bytes_of_pages(100));
  machine_.evict(56);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_F(Pools, BeyondItsShareARegionLeavesFirst) {
  int pool = 0;
  machine_.map(0, 32, kReadWrite);
  for (std::uint32_t page = 0; page < 32; ++page) machine_.write(page);
  std::uint32_t first = create(64, {.share_bytes = bytes_of_pages(8), .read_ahead_pages = 0}, &pool);
  touch(first, 32);
  std::vector<hl_page> leaving = victims(40);
  for (std::uint32_t i = 0; i < 24; ++i) EXPECT_EQ(leaving[i], first + i);
  for (std::uint32_t i = 24; i < 40; ++i) EXPECT_EQ(leaving[i], i - 24);
  expect_invariants();
}

TEST_F(Pools, WithinItsShareARegionLeavesLast) {
  int pool = 0;
  std::uint32_t first = create(64, {.share_bytes = bytes_of_pages(32), .read_ahead_pages = 0}, &pool);
  touch(first, 16);
  machine_.map(kOther, 48, kReadWrite);
  for (std::uint32_t page = kOther; page < kOther + 48; ++page) machine_.write(page);
  std::vector<hl_page> leaving = victims(64);  // nobody else has anything left: I5 comes before shares
  for (std::uint32_t i = 0; i < 48; ++i) EXPECT_EQ(leaving[i], kOther + i);
  for (std::uint32_t i = 48; i < 64; ++i) EXPECT_EQ(leaving[i], first + i - 48);
  machine_.evict(64);
  EXPECT_EQ(resident(first, 16), 0);
}

// As much of it as of the process's, where it has a policy of its own and no share.
TEST_F(Pools, WithACommonShareARegionLeavesWithTheProcess) {
  int pool = 0;
  std::uint32_t first = create(64, {.policy = &kLruPolicy, .common_share = true}, &pool);
  touch(first, 16);
  machine_.map(kOther, 48, kReadWrite);
  for (std::uint32_t page = kOther; page < kOther + 48; ++page) machine_.write(page);
  std::vector<hl_page> leaving = victims(16);
  ASSERT_EQ(leaving.size(), 16);
  EXPECT_EQ(std::ranges::count_if(leaving, [](hl_page page) { return page >= kOther; }), 12);
  EXPECT_EQ(victims(64).size(), 64);
  expect_invariants();
}

TEST_F(Pools, SharesTogetherAreAtMostHalfOfTheBudget) {
  int pool = 0;
  RegionOptions third{.share_bytes = bytes_of_pages(32)};
  std::uint32_t first = create(16, third, &pool);
  int other = 0;
  EXPECT_EQ(machine_.pager().create_region(kPageSize, third, &other), -EDQUOT);
  EXPECT_EQ(machine_.pager().create_region(kPageSize, {.share_bytes = ~std::uint64_t{0}}, &other), -EDQUOT);
  EXPECT_EQ(machine_.pager().destroy_region(machine_.address_of(first), bytes_of_pages(16), third, pool), 0);
  create(16, third, &pool);
}

TEST_F(Pools, ADestroyedRegionLeavesNothing) {
  RegionOptions how{.policy = &kSecondChancePolicy};
  for (int round = 0; round < 100; ++round) {  // more than there are pools: they are used again
    int pool = 0;
    std::uint32_t first = create(64, how, &pool);
    touch(first, 48);
    machine_.evict(16);
    ASSERT_EQ(machine_.pager().destroy_region(machine_.address_of(first), bytes_of_pages(64), how, pool), 0);
    machine_.kernel().unmapped(machine_.address_of(first), bytes_of_pages(64));
    ASSERT_EQ(machine_.core().policy.size(), 0);
    ASSERT_EQ(machine_.core().devices.pages_in_use(), 0);
  }
  expect_invariants();
}

TEST_F(Pools, ThereAreOnlySoMany) {
  int pool = 0;
  for (std::size_t i = 1; i < PolicyHost::kPoolsMax; ++i) create(16, {}, &pool);
  EXPECT_EQ(machine_.pager().create_region(kPageSize, {}, &pool), -ENOSPC);
  EXPECT_EQ(machine_.pager().create_region(~std::size_t{0}, {}, &pool), -ENOMEM);
}

TEST_F(Pools, ReadAheadOfARegionIsItsOwn) {
  int none = 0, pool = 0;
  std::uint32_t first = create(64, {.read_ahead_pages = 0}, &none);
  std::uint32_t other = create(64, {}, &pool);
  for (std::uint32_t start : {first, other}) {
    touch(start, 64);
    for (int round = 0; round < 100 && machine_.core().budget.local() > 0; ++round) machine_.evict(64);
  }
  auto ahead = [](std::uint64_t before) { return stat_page()->counters[Counter::pages_read_ahead] - before; };
  std::uint64_t before = ahead(0);
  touch(first, 32);
  EXPECT_EQ(ahead(before), 0);
  touch(other, 32);
  EXPECT_GT(ahead(before), 10);
}

}  // namespace
}  // namespace hinterland::testing
