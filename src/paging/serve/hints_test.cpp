// Hints over the page machine, case by case: what they bring, what they leave alone, and that none of it faults.
#include "paging/serve/hints.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

MachineOptions options_for(bool direct = true) {
  MachineOptions options;
  options.policy = &kFifoPolicy;
  options.direct = direct;
  return options;
}

std::uint64_t counted(Counter counter) { return stat_page()->counters[counter]; }

// Pages [0, count) written once and then all in far memory.
void fill_and_evict(PageMachine& machine, std::uint32_t count) {
  machine.map(0, count, kReadWrite);
  for (std::uint32_t page = 0; page < count; ++page) machine.write(page);
  for (int round = 0; round < 100 && machine.core().budget.local() > 0; ++round) machine.evict(count);
  ASSERT_EQ(machine.core().budget.local(), 0);
}

PageState state_of(PageMachine& machine, std::uint32_t page) { return machine.core().pages[{page}].load().state(); }

class HintsTest : public ::testing::TestWithParam<bool> {
 protected:
  PageMachine machine_{options_for(GetParam()), 1};
};

TEST_P(HintsTest, ReadBringsOnePageCleanAndSaysSo) {
  fill_and_evict(machine_, 32);
  std::uint64_t before = counted(Counter::hint_pages_in);
  machine_.hint({.address = machine_.address_of(5) + 100});
  EXPECT_EQ(counted(Counter::hint_pages_in), before + 1);
  EXPECT_EQ(state_of(machine_, 5), PageState::resident);
  EXPECT_FALSE(machine_.core().pages[{5}].load().dirty());
  EXPECT_EQ(machine_.core().hint_map.of({5}), HintMap::kThere);
  EXPECT_EQ(state_of(machine_, 4), PageState::far);
  EXPECT_EQ(state_of(machine_, 6), PageState::far);
  EXPECT_EQ(machine_.kernel().access(machine_.address_of(5), false).result, FakeKernel::Access::done);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// Else the first hint on each page that is there would be a call.
TEST_P(HintsTest, TheFirstOneNotesWhatIsThere) {
  fill_and_evict(machine_, 32);
  for (std::uint32_t page = 10; page < 20; ++page) machine_.write(page);
  ASSERT_EQ(machine_.core().hint_map.of({10}), 0);
  machine_.hint({.address = machine_.address_of(5)});
  EXPECT_EQ(machine_.core().hint_map.of({10}), HintMap::kThere | HintMap::kWritable);
  for (std::uint32_t page = 0; page < 32; ++page)
    EXPECT_EQ((machine_.core().hint_map.of({page}) & HintMap::kThere) != 0,
              state_of(machine_, page) == PageState::resident)
        << page;
}

TEST_P(HintsTest, WriteNeedsNoFaultAfterwards) {
  fill_and_evict(machine_, 32);
  machine_.hint({.address = machine_.address_of(5), .size = 3 * kPageSize, .write = true});
  for (std::uint32_t page = 5; page < 8; ++page) {
    EXPECT_EQ(machine_.core().hint_map.of({page}), HintMap::kThere | HintMap::kWritable);
    EXPECT_EQ(machine_.kernel().access(machine_.address_of(page), true).result, FakeKernel::Access::done);
  }
  EXPECT_EQ(state_of(machine_, 8), PageState::far);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// A page in the middle that is mapped otherwise would cut a run in pieces: one that shows what becomes of it is at an
// end.
TEST_P(HintsTest, RunsThatAreExpectedToBeWrittenAreNotCut) {
  constexpr std::uint32_t kRun = 20, kPages = 8 * kRun;  // no multiple of how often the forecast samples
  MachineOptions options = options_for(GetParam());
  options.budget_pages = 400;
  PageMachine machine(options, 1);
  fill_and_evict(machine, kPages);
  for (std::uint32_t page = 0; page < kPages; ++page) machine.core().forecast.note_written({page});
  std::uint32_t clean_ends = 0;
  for (std::uint32_t first = 0; first < kPages; first += kRun) {
    machine.hint({.address = machine.address_of(first), .size = bytes_of_pages(kRun)});
    for (std::uint32_t page = first + 1; page + 1 < first + kRun; ++page) {
      ASSERT_EQ(state_of(machine, page), PageState::resident) << page;
      EXPECT_TRUE(machine.core().pages[{page}].load().dirty()) << page;
    }
    clean_ends += !machine.core().pages[{first + kRun - 1}].load().dirty();
  }
  EXPECT_GE(clean_ends, 1u);
  EXPECT_LE(clean_ends, 6u);
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST_P(HintsTest, WriteOnACleanPageClearsTheProtection) {
  fill_and_evict(machine_, 32);
  machine_.hint({.address = machine_.address_of(5)});
  ASSERT_EQ(machine_.kernel().access(machine_.address_of(5), true).result, FakeKernel::Access::fault);
  machine_.serve({machine_.address_of(6), 0, false, false});  // another page: the first stays protected
  std::uint64_t before = counted(Counter::hint_protection_cleared);
  machine_.hint({.address = machine_.address_of(5), .write = true});
  EXPECT_EQ(counted(Counter::hint_protection_cleared), before + 1);
  EXPECT_TRUE(machine_.core().pages[{5}].load().dirty());
  machine_.kernel().wake(machine_.address_of(5), kPageSize);
  machine_.write(5);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, AnUnalignedRangeBringsBothItsPages) {
  fill_and_evict(machine_, 32);
  machine_.hint({.address = machine_.address_of(5) + kPageSize - 1, .size = 2});
  EXPECT_EQ(state_of(machine_, 5), PageState::resident);
  EXPECT_EQ(state_of(machine_, 6), PageState::resident);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, ReadAheadGoesBothWaysAndStopsAtTheEdges) {
  fill_and_evict(machine_, 32);
  machine_.hint({.address = machine_.address_of(8), .read_ahead = 3});
  for (std::uint32_t page = 8; page < 12; ++page) EXPECT_EQ(state_of(machine_, page), PageState::resident) << page;
  EXPECT_EQ(state_of(machine_, 12), PageState::far);
  machine_.hint({.address = machine_.address_of(2), .read_ahead = -100});
  for (std::uint32_t page = 0; page < 3; ++page) EXPECT_EQ(state_of(machine_, page), PageState::resident) << page;
  machine_.hint({.address = machine_.address_of(31), .read_ahead = 100});  // nothing is mapped behind it
  EXPECT_EQ(state_of(machine_, 31), PageState::resident);
  EXPECT_EQ(state_of(machine_, 32), PageState::untouched);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, AHugeRangeDoesNotPushOutWhatItBrought) {
  fill_and_evict(machine_, 400);
  machine_.hint({.address = machine_.address_of(0), .size = bytes_of_pages(400), .read_ahead = 1000});
  EXPECT_EQ(state_of(machine_, 0), PageState::resident);
  EXPECT_LE(machine_.core().budget.local(), machine_.core().budget.limit() / 4);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, WhatIsNotFarIsLeftAlone) {
  fill_and_evict(machine_, 32);
  std::uint64_t fetched = counted(Counter::hint_pages_in);
  machine_.hint({.address = 0, .write = true});
  machine_.hint({.address = ~std::uintptr_t{0}, .size = ~std::size_t{0}, .write = true});
  machine_.hint({.address = machine_.address_of(0) - 1, .size = kPageSize});
  machine_.hint({.address = machine_.address_of(100), .size = kPageSize, .write = true});  // not mapped
  machine_.hint({.address = machine_.address_of(512)});                                    // behind the window
  EXPECT_EQ(counted(Counter::hint_pages_in), fetched);
  EXPECT_EQ(machine_.core().budget.local(), 0);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, ABusyPageIsLeftToWhoeverMovesIt) {
  fill_and_evict(machine_, 8);
  PageWord word;
  ASSERT_TRUE(machine_.core().pages[{3}].try_lock(&word));
  machine_.pager().hint({.address = machine_.address_of(0), .size = bytes_of_pages(8)});
  EXPECT_EQ(state_of(machine_, 2), PageState::resident);
  EXPECT_EQ(state_of(machine_, 4), PageState::resident);
  EXPECT_EQ(state_of(machine_, 3), PageState::far);
  machine_.core().transitions.none({3}, word);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, MakesRoomWhenThereIsNone) {
  fill_and_evict(machine_, 300);
  for (std::uint32_t page = 0; page < 300; ++page) {
    machine_.hint({.address = machine_.address_of(page)});
    ASSERT_LE(machine_.core().budget.local(), machine_.core().budget.limit());
    ASSERT_EQ(machine_.kernel().access(machine_.address_of(page), false).result, FakeKernel::Access::done);
  }
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, AnEvictedPageIsNoLongerOnTheMap) {
  fill_and_evict(machine_, 8);
  machine_.hint({.address = machine_.address_of(3), .write = true});
  ASSERT_NE(machine_.core().hint_map.of({3}), 0);
  machine_.evict(8);
  EXPECT_EQ(machine_.core().hint_map.of({3}), 0);
  machine_.hint({.address = machine_.address_of(3)});
  machine_.unmap(0, 8);
  EXPECT_EQ(machine_.core().hint_map.of({3}), 0);
}

TEST_P(HintsTest, WhatWasThereBeforeTheFirstHintIsFound) {
  fill_and_evict(machine_, 8);
  machine_.read(3);
  ASSERT_EQ(machine_.core().hint_map.of({3}), 0);  // nobody had asked
  std::uint64_t fetched = counted(Counter::hint_pages_in);
  machine_.hint({.address = machine_.address_of(3)});
  EXPECT_EQ(counted(Counter::hint_pages_in), fetched);
  EXPECT_NE(machine_.core().hint_map.of({3}), 0);
}

// Recency: a policy's question makes the next hint ask, and that is the answer to the policy's next question.
TEST_P(HintsTest, HintsAnswerAPolicysQuestions) {
  fill_and_evict(machine_, 8);
  HintMap& map = machine_.core().hint_map;
  EXPECT_FALSE(map.was_hinted({3}));  // no hints yet
  machine_.hint({.address = machine_.address_of(3)});
  EXPECT_TRUE(map.was_hinted({3}));
  EXPECT_EQ(map.of({3}), HintMap::kAsked);
  EXPECT_FALSE(map.was_hinted({3}));
  std::uint64_t fetched = counted(Counter::hint_pages_in), there = counted(Counter::hint_pages_there);
  machine_.hint({.address = machine_.address_of(3)});
  EXPECT_EQ(counted(Counter::hint_pages_in), fetched);
  EXPECT_EQ(counted(Counter::hint_pages_there), there + 1);
  EXPECT_TRUE(map.was_hinted({3}));
  machine_.evict(8);
  EXPECT_FALSE(map.was_hinted({3}));
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, BegunPagesComeWhenSomebodyPolls) {
  fill_and_evict(machine_, 32);
  Hint hint{.address = machine_.address_of(5), .size = bytes_of_pages(8)};
  machine_.device()->decide = [](std::size_t) { return std::size_t{0}; };  // one at a time, the first asked for first
  bool on_its_way = machine_.pager().begin_hint(hint);
  EXPECT_EQ(on_its_way, !GetParam());
  EXPECT_EQ(machine_.pager().is_on_its_way(hint), on_its_way);
  EXPECT_EQ(machine_.core().budget.local(), 8);  // I5: counted from the start
  EXPECT_EQ(machine_.check_invariants(0), "");
  machine_.gather();
  EXPECT_FALSE(machine_.pager().is_on_its_way(hint));
  EXPECT_FALSE(machine_.parts().hints.anything_on_its_way());
  for (std::uint32_t page = 5; page < 13; ++page)
    EXPECT_EQ(machine_.kernel().access(machine_.address_of(page), false).result, FakeKernel::Access::done);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, AHintWaitsForWhatWasBegun) {
  fill_and_evict(machine_, 32);
  machine_.pager().begin_hint({.address = machine_.address_of(5), .size = bytes_of_pages(8)});
  machine_.pager().hint({.address = machine_.address_of(7)});
  EXPECT_EQ(state_of(machine_, 7), PageState::resident);
  machine_.gather();
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// Nobody polls: who unmaps the pages does, else he waits for ever.
TEST_P(HintsTest, UnmappingWhatIsOnItsWay) {
  fill_and_evict(machine_, 32);
  machine_.pager().begin_hint({.address = machine_.address_of(5), .size = bytes_of_pages(8)});
  machine_.unmap(0, 32);
  machine_.gather();
  EXPECT_EQ(machine_.core().budget.local(), 0);
  EXPECT_EQ(machine_.check_invariants(0), "");
}

TEST_P(HintsTest, MoreIsBegunThanThereIsRoomFor) {
  fill_and_evict(machine_, 400);
  for (std::uint32_t page = 0; page < 400; ++page)
    machine_.pager().begin_hint({.address = machine_.address_of(page)});
  EXPECT_LE(machine_.core().budget.local(), machine_.core().budget.limit() + Fetcher::kRunMax);
  machine_.gather();
  EXPECT_EQ(machine_.check_invariants(0), "");
}

// A policy that knows of a chain: what is wanted behind each page is ten pages on, and twenty.
hl_policy_ops chain_policy() {
  hl_policy_ops chain = kFifoPolicy;
  chain.hinted = [](void*, hl_page page, hl_page* next, std::uint32_t max) -> std::uint32_t {
    for (std::uint32_t i = 0; i < std::min(max, 2u); ++i) next[i] = page + 10 * (i + 1);
    return std::min(max, 2u);
  };
  return chain;
}
const hl_policy_ops kChainPolicy = chain_policy();

class HintsOfAPolicyTest : public ::testing::TestWithParam<bool> {
 protected:
  HintsOfAPolicyTest() : options_(options_for(GetParam())) { options_.policy = &kChainPolicy; }
  MachineOptions options_;
};

TEST_P(HintsOfAPolicyTest, BringsWhatThePolicyWantsBesides) {
  PageMachine machine(options_, 1);
  fill_and_evict(machine, 64);
  std::uint64_t before = counted(Counter::pages_read_ahead);
  machine.hint({.address = machine.address_of(3)});
  EXPECT_EQ(state_of(machine, 3), PageState::resident);
  EXPECT_EQ(counted(Counter::pages_read_ahead), before + 2);
  for (std::uint32_t page : {13u, 23u}) EXPECT_NE(state_of(machine, page), PageState::far) << page;
  for (std::uint32_t page : {4u, 12u, 14u, 33u}) EXPECT_EQ(state_of(machine, page), PageState::far) << page;
  machine.hint({.address = machine.address_of(3)});  // it is there: nobody is asked
  EXPECT_EQ(counted(Counter::pages_read_ahead), before + 2);
  machine.write(13);
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST_P(HintsOfAPolicyTest, ButNotBeyondTheProgramsReadAhead) {
  options_.read_ahead_pages = 1;
  PageMachine machine(options_, 1);
  fill_and_evict(machine, 64);
  machine.hint({.address = machine.address_of(3)});
  EXPECT_NE(state_of(machine, 13), PageState::far);
  EXPECT_EQ(state_of(machine, 23), PageState::far);
}

INSTANTIATE_TEST_SUITE_P(Devices, HintsOfAPolicyTest, ::testing::Bool(),
                         [](const auto& direct) { return direct.param ? "Direct" : "Queued"; });
INSTANTIATE_TEST_SUITE_P(Devices, HintsTest, ::testing::Bool(),
                         [](const auto& direct) { return direct.param ? "Direct" : "Queued"; });

// A server that does not answer for a while: hints leave it to the faults, and do not each wait for it; then they
// fetch.
TEST(HintsFailure, ADeviceThatCannotBeReachedIsTriedAgain) {
  PageMachine machine(options_for(false), 1);
  fill_and_evict(machine, 8);
  bool first_alone = false;  // the second did not try; on a busy machine it may have come too late for that
  for (int tries = 0; tries < 20 && !first_alone; ++tries) {
    if (tries != 0) usleep(1'100'000);
    machine.device()->faults.channels = 2;
    machine.hint({.address = machine.address_of(0)});
    machine.hint({.address = machine.address_of(1)});
    first_alone = machine.device()->faults.channels == 1;
  }
  EXPECT_TRUE(first_alone);
  EXPECT_EQ(state_of(machine, 0), PageState::far);
  EXPECT_EQ(machine.check_invariants(0), "");
  machine.read(0);
  machine.device()->faults.channels = 0;
  for (int tries = 0; tries < 100 && state_of(machine, 1) == PageState::far; ++tries) {
    machine.hint({.address = machine.address_of(1)});
    usleep(50'000);
  }
  EXPECT_EQ(state_of(machine, 1), PageState::resident);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// What is used once leaves before what is used again, although it came later.
TEST(HintsPriority, WhatHintsBringWithAPriorityLeavesFirst) {
  MachineOptions options = options_for();
  options.policy = &kPriorityPolicy;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 96);
  for (std::uint32_t page = 0; page < 32; ++page) machine.hint({.address = machine.address_of(page)});
  for (std::uint32_t page = 64; page < 96; ++page)
    machine.hint({.address = machine.address_of(page), .priority = 15});
  machine.evict(16);
  EXPECT_EQ(machine.check_invariants(0), "");
  for (std::uint32_t page = 0; page < 32; ++page) EXPECT_EQ(state_of(machine, page), PageState::resident) << page;
  EXPECT_NE(state_of(machine, 64), PageState::resident);
}

// I4, and the other half: a hint that cannot have a page does not take it from a program that never touches it.
TEST(HintsFailure, APageThatCannotBeHadIsLostOnlyWhenItIsTouched) {
  MachineOptions options = options_for(false);
  options.device_failures = true;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 8);
  machine.device()->faults.reads = 1;
  machine.hint({.address = machine.address_of(0), .size = bytes_of_pages(8), .write = true});
  for (std::uint32_t page = 0; page < 8; ++page) EXPECT_EQ(state_of(machine, page), PageState::far);
  EXPECT_EQ(machine.check_invariants(0), "");
  machine.device()->faults.reads = 0;
  for (std::uint32_t page = 0; page < 8; ++page) machine.read(page);
  EXPECT_EQ(machine.failure(), "");
  machine.evict(8);
  machine.device()->faults.reads = 1;
  EXPECT_FALSE(machine.touch(3, false));
}

}  // namespace
}  // namespace hinterland::testing
