// Who reclaims ahead of need: the background thread, or the fault handler, when one thread changes scattered pages.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/page/core.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 4096;  // four times the budget
constexpr std::uint32_t kChanges = 60'000;

std::uint64_t counted(Counter counter) { return stat_page()->counters[counter]; }

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

TEST(FlushShareTest, ScatteredPagesAreLeftToTheirUsersWhileTheseTakeSome) {
  FlushShare share;
  std::uint32_t seen = 0;
  share.note_taken_where_used();
  EXPECT_FALSE(share.left_to_users(&seen));  // they leave many with a flush
  for (int i = 0; i < 32; ++i) share.note(200, 256);
  EXPECT_FALSE(share.left_to_users(&seen));  // that was before
  share.note_taken_where_used();
  EXPECT_TRUE(share.left_to_users(&seen));
  EXPECT_FALSE(share.left_to_users(&seen));
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

// Whether a thread that makes way gets hardly any CPU here, as beside programs that compute without a pause.
bool machine_is_too_busy() {
  timespec used{};
  std::thread([&] {
    set_idle_policy(0, true);
    for (std::uint64_t until = now_ns() + 50'000'000; now_ns() < until;) continue;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  }).join();
  return used.tv_sec == 0 && used.tv_nsec < 25'000'000;
}

// A handler that does not get the CPU when it makes way stops that for long, and then takes nothing: again, with a
// new one.
void run_until_seen(const std::function<std::string(Pager&, bool* seen)>& body,
                    const RealPagerOptions& options = {}) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handler may not make way here (CAP_SYS_NICE)";
  auto* seen =
      static_cast<bool*>(mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(seen, MAP_FAILED);
  constexpr int kQuietTries = 10;
  int quiet = 0;
  for (std::uint64_t until = now_ns() + 20'000'000'000;
       quiet < kQuietTries && now_ns() < until && !*seen && !::testing::Test::HasFailure();) {
    bool busy = machine_is_too_busy();
    run_with_real_pager(options, [&](Pager& pager) { return body(pager, seen); });
    quiet += !busy && !machine_is_too_busy();
  }
  bool was_seen = *seen;
  munmap(seen, kPageSize);
  if (was_seen || ::testing::Test::HasFailure()) return;
  if (quiet < kQuietTries)
    GTEST_SKIP() << "others compute on each CPU: a handler that makes way is hardly ever there";
  ADD_FAILURE() << "the handler did not take pages in " << quiet << " tries with a CPU for it";
}

std::uint64_t taken_by_the_handler() { return counted(Counter::reclaim_handler_pages); }

TEST(KeepRoomTest, TheHandlerTakesScatteredPagesOfALoneThread) {
  run_until_seen([](Pager& pager, bool* seen) {
    std::string wrong = change_and_compare(pager, true);
    *seen = taken_by_the_handler() != 0;
    return wrong;
  });
}

// One thread changes scattered pages, and sleeps now and then, as a server does between requests. While it sleeps
// nobody faults, so what the handler takes then it takes at leisure.
TEST(KeepRoomTest, TheHandlerMakesRoomWhileTheThreadSleeps) {
  constexpr std::uint32_t kMany = 8 * kPages;  // of a budget whose high watermark is more than one fault takes
  RealPagerOptions options;
  options.budget_bytes = bytes_of_pages(kMany / 4);
  auto sleep_between_changes = [](Pager& pager, bool* seen) -> std::string {
    std::intptr_t mapped = pager.map(bytes_of_pages(kMany), kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    auto* words = reinterpret_cast<std::uint64_t*>(mapped);
    constexpr std::size_t kStep = kPageSize / sizeof *words;
    constexpr int kWanted = 20;
    std::mt19937_64 random(11);
    for (std::uint32_t i = 0; i < kMany; ++i) ++words[random() % kMany * kStep];
    int made_room = 0;
    for (int burst = 0; burst < 300 && made_room < kWanted; ++burst) {
      for (int i = 0; i < 40; ++i) ++words[random() % kMany * kStep];
      usleep(100);  // the handler is done with the last fault
      std::uint64_t before = taken_by_the_handler();
      for (int looks = 0; looks < 20 && !has_room_in_hand(pager); ++looks) usleep(1'000);
      made_room += has_room_in_hand(pager) && taken_by_the_handler() > before;
    }
    *seen = made_room == kWanted;
    return audit(pager, true);
  };
  run_until_seen(sleep_between_changes, options);
}

// Scattered pages that are only read are the background's, the handler's where waking it draws the thread away, or a
// fault's that finds no room: whose is the machine's affair, that none is lost is not.
TEST(KeepRoomTest, ScatteredReadsFindWhatWasWritten) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    auto* words = reinterpret_cast<std::uint64_t*>(mapped);
    constexpr std::size_t kStep = kPageSize / sizeof *words;
    for (std::uint32_t page = 0; page < kPages; ++page) words[page * kStep + page % kStep] = page + 1;
    std::mt19937_64 random(12);
    for (std::uint32_t i = 0; i < 3 * kChanges; ++i) {
      std::size_t page = random() % kPages;
      if (words[page * kStep + page % kStep] != page + 1) return "page " + std::to_string(page) + " is wrong";
    }
    std::uint64_t taken =
        taken_by_the_handler() + counted(Counter::reclaim_background_pages) + counted(Counter::reclaim_direct_pages);
    if (taken < kChanges) return "only " + std::to_string(taken) + " pages were taken";
    return audit(pager, true);
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
