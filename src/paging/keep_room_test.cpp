// Who reclaims ahead of need: the background thread, or the fault handler, when one thread changes scattered pages.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/core.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 4096;  // four times the budget
constexpr std::uint32_t kChanges = 60'000;

std::uint64_t counted(Counter counter) {
  return stat_page()->counters[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
}

TEST(FlushShareTest, IsHighWherePagesLeaveOneByOne) {
  FlushShare share;
  EXPECT_FALSE(share.high());
  for (int i = 0; i < 32; ++i) share.note(200, 256);
  EXPECT_TRUE(share.high());
  share.note(0, 0);  // nothing chosen says nothing
  EXPECT_TRUE(share.high());
  for (int i = 0; i < 32; ++i) share.note(4, 256);
  EXPECT_FALSE(share.high());
  for (int i = 0; i < 32; ++i) share.note(1, 2);  // small batches count like large ones
  EXPECT_TRUE(share.high());
}

// One thread changes a word of each page, page after page or at random; then every page is compared.
std::string change_and_compare(Pager& pager, bool scattered) {
  std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
  if (mapped < 0) return "cannot map";
  auto* words = reinterpret_cast<std::uint64_t*>(mapped);
  constexpr std::size_t kStep = kPageSize / sizeof *words;
  std::vector<std::uint64_t> shadow(kPages);
  std::mt19937_64 random(11);
  for (std::uint32_t i = 0; i < kChanges; ++i) {
    std::size_t page = scattered ? random() % kPages : i % kPages;
    words[page * kStep + page % kStep] = ++shadow[page];
  }
  for (std::size_t page = 0; page < kPages; ++page)
    if (words[page * kStep + page % kStep] != shadow[page]) return "page " + std::to_string(page) + " is wrong";
  return audit(pager, true);
}

TEST(KeepRoomTest, TheHandlerTakesScatteredPagesOfALoneThread) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handler may not make way here (CAP_SYS_NICE)";
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    if (std::string wrong = change_and_compare(pager, true); !wrong.empty()) return wrong;
    return counted(Counter::reclaim_handler_pages) != 0 ? "" : "the handler took no page";
  });
}

// One thread changes scattered pages, and sleeps now and then, as a server does between requests.
TEST(KeepRoomTest, TheHandlerMakesRoomWhileTheThreadSleeps) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handler may not make way here (CAP_SYS_NICE)";
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    auto* words = reinterpret_cast<std::uint64_t*>(mapped);
    constexpr std::size_t kStep = kPageSize / sizeof *words;
    std::mt19937_64 random(11);
    int full = 0, pauses = 0;
    for (int burst = 0; burst < 240; ++burst) {
      for (int i = 0; i < 40; ++i) ++words[random() % kPages * kStep];
      usleep(2'000);
      if (burst < 140) continue;  // until it is known how pages leave here
      ++pauses;
      full += has_room_in_hand(pager);
    }
    if (std::string wrong = audit(pager, true); !wrong.empty()) return wrong;
    return full * 2 > pauses ? "" : "room in " + std::to_string(full) + " of " + std::to_string(pauses) + " pauses";
  });
}

TEST(KeepRoomTest, RunsAreLeftToTheBackground) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    std::uint64_t here = 0, background = 0;
    for (int round = 0; round < 10; ++round) {  // the background may have had no CPU
      here = counted(Counter::reclaim_handler_pages), background = counted(Counter::reclaim_background_pages);
      if (std::string wrong = change_and_compare(pager, false); !wrong.empty()) return wrong;
      here = counted(Counter::reclaim_handler_pages) - here;
      background = counted(Counter::reclaim_background_pages) - background;
      if (here * 10 <= background) return "";
    }
    return std::to_string(here) + " by the handler, " + std::to_string(background) + " in the background";
  });
}

}  // namespace
}  // namespace hinterland::testing
