// hint.h and hint.hpp over a runtime that writes down what it is asked: when they ask, and what.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/hint.hpp"
#include "hinterland/region.h"

namespace {

struct Asked {
  std::uintptr_t offset;
  std::size_t size;
  std::int32_t read_ahead;
  std::uint32_t flags;
  bool operator==(const Asked&) const = default;
};
std::vector<Asked> g_asked;

constexpr std::uintptr_t kBase = 0x7000'0000'0000, kPage = 4096, kPages = 64;
std::array<unsigned char, kPages> g_map;

void write_down(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  g_asked.push_back({reinterpret_cast<std::uintptr_t>(address) - kBase, size, read_ahead, flags});
}

struct Created {
  std::uint32_t by;  // version of the call
  std::size_t options_size;
  bool operator==(const Created&) const = default;
};
std::vector<Created> g_created;

int create_as_of_two(hl_region*, std::size_t, const hl_region_options*) {
  g_created.push_back({2, 0});
  return 0;
}
int create_as_of_three(hl_region*, std::size_t, const hl_region_options*, std::size_t options_size) {
  g_created.push_back({3, options_size});
  return 0;
}

void cold_written_down(const void* address, std::size_t size) {
  g_asked.push_back({reinterpret_cast<std::uintptr_t>(address) - kBase, size, 0, 0xC01D});
}

}  // namespace

// Where the library's would be.
struct hl_runtime hl_runtime = {
    2,       0,       0,       0,       nullptr, write_down, nullptr, nullptr, nullptr, cold_written_down,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,    nullptr, nullptr};

namespace {

class HintHeader : public ::testing::Test {
 protected:
  void SetUp() override {
    g_asked.clear();
    g_map.fill(0);
    hl_runtime.base = kBase;
    hl_runtime.size = kPages * kPage;
    hl_runtime.map = g_map.data();
  }
  static char* at(std::uintptr_t page, std::uintptr_t offset = 0) {
    return reinterpret_cast<char*>(kBase + page * kPage + offset);
  }
};

TEST_F(HintHeader, AsksForAMissingPage) {
  hl_read(at(3, 5));
  hl_write(at(4));
  EXPECT_EQ(g_asked, (std::vector<Asked>{{3 * kPage + 5, 1, 0, 0}, {4 * kPage, 1, 0, HL_HINT_WRITE}}));
}

TEST_F(HintHeader, PrefetchAsksNotToWait) {
  g_map[3] = HL_THERE;
  hl_prefetch(at(3), 8);
  hl_prefetch(at(4), 8);
  hl::prefetch(at(3, 4095), 2);
  EXPECT_EQ(g_asked,
            (std::vector<Asked>{{4 * kPage, 8, 0, HL_HINT_NO_WAIT}, {3 * kPage + 4095, 2, 0, HL_HINT_NO_WAIT}}));
}

TEST_F(HintHeader, ColdNamesWholePagesOnly) {
  hl_cold(at(3, 1), 2 * kPage);
  hl_cold(at(3, 1), kPage);
  hl_cold(nullptr, ~std::size_t{0});
  hl_cold(at(kPages), kPage);
  hl::cold(at(5), kPage);
  EXPECT_EQ(g_asked, (std::vector<Asked>{{4 * kPage, kPage, 0, 0xC01D}, {5 * kPage, kPage, 0, 0xC01D}}));
}

TEST_F(HintHeader, DoesNotAskForAPageThatIsThere) {
  g_map[3] = HL_THERE;
  hl_read(at(3));
  EXPECT_TRUE(g_asked.empty());
  hl_write(at(3));  // there, and protected
  EXPECT_EQ(g_asked.size(), 1u);
  g_map[3] = HL_THERE | HL_WRITABLE;
  hl_write(at(3));
  hl_read(at(3));
  EXPECT_EQ(g_asked.size(), 1u);
}

TEST_F(HintHeader, DoesNotAskOutsideOfTheWindowOrBeforePagingHasBegun) {
  hl_read(nullptr);
  hl_read(at(0) - 1);
  hl_read(at(kPages));
  hl_write(reinterpret_cast<void*>(~std::uintptr_t{0}));
  hl_runtime.size = 0;
  hl_read(at(3));
  hl::hint(at(3), {.size = 10 * kPage, .seq = true});
  EXPECT_TRUE(g_asked.empty());
}

TEST_F(HintHeader, LooksAtBothEndsOfARange) {
  g_map[3] = g_map[5] = HL_THERE;
  hl::hint(at(3, 4000), {.size = 96});
  EXPECT_TRUE(g_asked.empty());
  hl::hint(at(3, 4000), {.size = 97});  // its last byte is on page 4
  ASSERT_EQ(g_asked.size(), 1u);
  hl::hint(at(3), {.size = 3 * kPage});  // 4 lies between: the runtime will see
  EXPECT_EQ(g_asked.size(), 2u);
}

TEST_F(HintHeader, ASequenceAsksOnceAPageAndSaysWhichWayItGoes) {
  for (std::uintptr_t offset = 0; offset < 3 * kPage; offset += 64) hl_seq_read(at(3, offset));
  EXPECT_EQ(g_asked, (std::vector<Asked>{{3 * kPage, 1, 0, HL_HINT_SEQUENTIAL},
                                         {4 * kPage, 1, INT32_MAX, HL_HINT_SEQUENTIAL},
                                         {5 * kPage, 1, INT32_MAX, HL_HINT_SEQUENTIAL}}));
  g_asked.clear();
  for (std::uintptr_t page = 9; page > 7; --page) hl_seq_write(at(page));
  ASSERT_EQ(g_asked.size(), 2u);
  EXPECT_EQ(g_asked[1], (Asked{8 * kPage, 1, -INT32_MAX, HL_HINT_SEQUENTIAL | HL_HINT_WRITE}));
}

// Eden's rdahead and ev_prio pass through; what the program says about read-ahead counts.
TEST_F(HintHeader, OptionsArrive) {
  hl::hint(at(3), {.mut = true, .size = 2 * kPage, .rdahead = -7, .ev_prio = 5});
  EXPECT_EQ(g_asked.back(), (Asked{3 * kPage, 2 * kPage, -7, HL_HINT_WRITE | 5u << HL_HINT_PRIORITY_SHIFT}));
  for (std::uintptr_t page = 10; page < 12; ++page) hl::hint(at(page), {.rdahead = 3, .seq = true});
  EXPECT_EQ(g_asked.back(), (Asked{11 * kPage, 1, 3, HL_HINT_SEQUENTIAL}));
}

template <typename Value>
void two_places(Value first, Value second) {
  hl_seq_read(first);
  hl::seq_read(second);
}

TEST_F(HintHeader, EachPlaceAndEachThreadHasAMemoryOfItsOwn) {
  for (int round = 0; round < 10; ++round) two_places(at(20), at(40));
  EXPECT_EQ(g_asked.size(), 2u);  // one each: the places do not disturb each other
  std::thread([] { two_places(at(20), at(40)); }).join();
  EXPECT_EQ(g_asked.size(), 4u);  // the other thread has not seen them yet
  two_places(at(20), at(40));
  EXPECT_EQ(g_asked.size(), 4u);
}

TEST_F(HintHeader, ArgumentsAreEvaluatedOnceAndIfElseKeepsItsMeaning) {
  int evaluated = 0;
  auto next = [&] { return at(static_cast<std::uintptr_t>(++evaluated)); };
  if (evaluated == 0)
    hl_seq_read(next());
  else
    hl_seq_write(next());
  hl_read(next());
  hl::hint(next(), {.seq = true});
  EXPECT_EQ(evaluated, 3);
  EXPECT_EQ(g_asked.size(), 3u);
}

// A library that knows no devices is not asked for one; one that does learns how long the options are.
TEST_F(HintHeader, RegionsAreAskedForAsTheLibraryKnowsThem) {
  const hl_region_options plain{HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, nullptr, nullptr, nullptr};
  const hl_region_options on_device{HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, nullptr, "zmem:", nullptr};
  hl_region region;
  struct hl_runtime before = hl_runtime;
  hl_runtime.region_create = create_as_of_two;
  hl_runtime.region_create_sized = nullptr;
  EXPECT_EQ(hl_region_create(&region, kPage, nullptr), 0);
  EXPECT_EQ(hl_region_create(&region, kPage, &plain), 0);
  EXPECT_EQ(hl_region_create(&region, kPage, &on_device), ENOTSUP);
  EXPECT_EQ(g_created, (std::vector<Created>{{2, 0}, {2, 0}}));
  hl_runtime.abi_version = 3;
  hl_runtime.region_create_sized = create_as_of_three;
  EXPECT_EQ(hl_region_create(&region, kPage, nullptr), 0);
  EXPECT_EQ(hl_region_create(&region, kPage, &on_device), 0);
  EXPECT_EQ(g_created.size(), 4);
  EXPECT_EQ(g_created.back(), (Created{3, sizeof(hl_region_options)}));
  hl_runtime = before;
}

TEST_F(HintHeader, PinsWithoutARuntimeSucceed) {
  int local = 0;
  hl::pinned keep(&local, sizeof local);
  EXPECT_EQ(hl_discard(at(3), 5 * kPage), 0);
}

}  // namespace
