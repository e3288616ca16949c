// The page machine, case by case: what happens when the kernel refuses, the device fails, or a message comes late.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/stats.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

MachineOptions fifo_options() {
  MachineOptions options;
  options.policy = &kFifoPolicy;
  return options;
}

// Linux with pages that were locked by a raw system call: it does not drop them, nor a range that holds one.
class KernelWithLockedPages final : public FakeKernel {
 public:
  using FakeKernel::FakeKernel;
  std::vector<std::uintptr_t> locked;

  int discard(std::span<const iovec> ranges) override {
    for (const iovec& range : ranges) {
      auto from = reinterpret_cast<std::uintptr_t>(range.iov_base);
      auto in_range = [&](std::uintptr_t page) { return page - from < range.iov_len; };
      if (std::any_of(locked.begin(), locked.end(), in_range)) return -EINVAL;
      FakeKernel::discard({&range, 1});
    }
    return 0;
  }
};

// Linux that remembers which addresses were dropped.
class KernelThatKeepsBooks final : public FakeKernel {
 public:
  using FakeKernel::FakeKernel;
  std::vector<iovec> dropped;

  int discard(std::span<const iovec> ranges) override {
    dropped.insert(dropped.end(), ranges.begin(), ranges.end());
    return FakeKernel::discard(ranges);
  }
};

// Pages [0, count) written once and then all in far memory.
void fill_and_evict(PageMachine& machine, std::uint32_t count) {
  machine.map(0, count, kReadWrite);
  for (std::uint32_t page = 0; page < count; ++page) machine.write(page);
  for (int round = 0; round < 100 && machine.core().budget.local() > 0; ++round) machine.evict(count);
  ASSERT_EQ(machine.core().budget.local(), 0);
  ASSERT_EQ(machine.core().devices.pages_in_use(), count);
}

// I1: pages of groups that nobody used are not locked, so they must be left alone; a fault may bring one meanwhile.
TEST(PageMachineCase, WhatIsGivenBackIsDroppedOnlyWhereItIsLocked) {
  MachineOptions options = fifo_options();
  options.window_pages = 256;
  auto kernel = std::make_unique<KernelThatKeepsBooks>(options.features);
  KernelThatKeepsBooks& books = *kernel;
  PageMachine machine(options, 1, std::move(kernel));
  machine.map(0, 128, kReadWrite);
  for (std::uint32_t page : {20u, 21u, 70u}) machine.write(page);  // groups 16 to 31 and 64 to 79
  books.dropped.clear();
  machine.drop(0, 128);
  std::size_t pages = 0;
  for (const iovec& range : books.dropped) {
    std::uint32_t first = static_cast<std::uint32_t>(
        (reinterpret_cast<std::uintptr_t>(range.iov_base) - machine.address_of(0)) >> kPageShift);
    pages += range.iov_len >> kPageShift;
    for (std::uint32_t page = first; page < first + (range.iov_len >> kPageShift); ++page)
      EXPECT_TRUE(machine.core().pages.is_used({page})) << page;
  }
  EXPECT_GE(pages, 3u);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Another thread of the parent held each page when the program forked: for a pin, say, which changes nothing.
TEST(PageMachineCase, NobodyHoldsAnInheritedPage) {
  PageMachine machine(fifo_options(), 1);
  fill_and_evict(machine, 4);
  Core& core = machine.core();
  machine.read(0);
  for (std::uint32_t page = 0; page < 4; ++page) {
    PageCell& cell = core.pages[PageIndex{page}];
    const PageState state = cell.load().state();
    PageWord word;
    ASSERT_TRUE(cell.try_lock(&word));
    ASSERT_TRUE(cell.announce_waiter());
    EXPECT_EQ(core.transitions.inherit(cell), page == 0);
    EXPECT_FALSE(cell.load().busy());
    EXPECT_FALSE(cell.load().waiters());
    EXPECT_EQ(cell.load().state(), state);
  }
}

TEST(PageMachineCase, ALostPageGivesItsFarSpaceBack) {
  MachineOptions options = fifo_options();
  options.direct = false;
  options.device_failures = true;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 8);
  machine.device()->faults.reads = 1;
  EXPECT_FALSE(machine.touch(3, false));
  EXPECT_EQ(machine.core().pages[{3}].load().state(), PageState::lost);
  EXPECT_EQ(machine.core().devices.pages_in_use(), 7u);
  EXPECT_EQ(machine.check_invariants(0), "");
}

TEST(PageMachineCase, ALostPageThatTheProgramFreesIsWholeAgain) {
  MachineOptions options = fifo_options();
  options.direct = false;
  options.device_failures = true;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 8);
  machine.device()->faults.reads = 1;
  ASSERT_FALSE(machine.touch(1, false));
  ASSERT_FALSE(machine.touch(2, false));
  machine.drop(1, 1);
  machine.decommit(2, 1);
  EXPECT_EQ(machine.check_invariants(0), "");
  machine.commit(2, 1);
  machine.read(1);  // zeros
  machine.write(2);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// A page that is taken by a copy and comes back by one leaves a frame behind, whose expiry is no gain.
TEST(PageMachineCase, ReclaimGivesUpWhenTheDeviceRefusesAndMoveCannotBeUsed) {
  MachineOptions options = fifo_options();
  options.take_by_move = false;
  PageMachine machine(options, 1);
  machine.device()->faults.full = true;
  machine.map(0, 200, kReadWrite);
  for (std::uint32_t page = 0; page < 200; ++page) machine.write(page);  // each ends, beyond the budget
  EXPECT_GE(machine.core().budget.local(), 200);
  std::int64_t before = machine.core().budget.local();
  std::size_t freed = machine.core().budget.local() > 0 ? machine.reclaim(64) : 0;
  EXPECT_EQ(static_cast<std::int64_t>(freed), std::max<std::int64_t>(0, before - machine.core().budget.local()));
  EXPECT_EQ(machine.check_invariants(0), "");
}

// The message was sent, then the program unmapped the page, and the handler comes before the page is forgotten.
TEST(PageMachineCase, AWriterOfACleanPageIsWokenWhenTheMappingWentAway) {
  PageMachine machine(fifo_options(), 1);
  fill_and_evict(machine, 4);
  machine.read(2);
  ASSERT_FALSE(machine.core().pages[{2}].load().dirty());
  FakeKernel::Outcome outcome = machine.kernel().access(machine.address_of(2), true);
  ASSERT_EQ(outcome.result, FakeKernel::Access::fault);
  ASSERT_EQ(machine.kernel().unregister_range(machine.address_of(2), kPageSize), 0);
  machine.serve(outcome.message);
  EXPECT_FALSE(machine.kernel().look(machine.address_of(2)).waiting);
}

// I3, I5: what the kernel does not unmap stays clean, resident and counted; the others go.
TEST(PageMachineCase, CleanPagesThatTheKernelKeepsStayAsTheyAre) {
  MachineOptions options = fifo_options();
  auto kernel = std::make_unique<KernelWithLockedPages>(options.features);
  KernelWithLockedPages& linux_with_locks = *kernel;
  PageMachine machine(options, 1, std::move(kernel));
  fill_and_evict(machine, 8);
  machine.core().second_chance.enabled = false;  // clean pages are unmapped, not moved
  for (std::uint32_t page = 0; page < 8; ++page) machine.read(page);
  linux_with_locks.locked = {machine.address_of(2), machine.address_of(5)};
  machine.evict(8);
  for (std::uint32_t page = 0; page < 8; ++page)
    EXPECT_EQ(machine.core().pages[{page}].load().state(),
              page == 2 || page == 5 ? PageState::resident : PageState::far);
  EXPECT_EQ(machine.check_invariants(0), "");
  machine.write(2);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// A page that was protected to be copied, and then could not be unmapped, is written without a fault again.
TEST(PageMachineCase, APageThatCannotBeUnmappedAfterItsCopyIsUnprotectedAgain) {
  MachineOptions options = fifo_options();
  options.take_by_move = false;
  auto kernel = std::make_unique<KernelWithLockedPages>(options.features);
  KernelWithLockedPages& linux_with_locks = *kernel;
  PageMachine machine(options, 1, std::move(kernel));
  machine.map(0, 2, kReadWrite);
  machine.write(0);
  machine.write(1);
  linux_with_locks.locked = {machine.address_of(0)};
  machine.evict(2);
  EXPECT_EQ(machine.core().pages[{0}].load().state(), PageState::resident);
  EXPECT_NE(machine.core().pages[{1}].load().state(), PageState::resident);
  EXPECT_FALSE(machine.kernel().look(machine.address_of(0)).write_protected);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// The same where the kernel has no memory for the copy.
TEST(PageMachineCase, APageThatCannotBeCopiedIsUnprotectedAgain) {
  MachineOptions options = fifo_options();
  options.take_by_move = false;
  PageMachine machine(options, 1);
  machine.map(0, 1, kReadWrite);
  machine.write(0);
  machine.kernel().failures.copies = 1000;
  machine.kernel().failures.copy_error = -ENOMEM;
  machine.evict(1);
  machine.kernel().failures = {};
  EXPECT_EQ(machine.core().pages[{0}].load().state(), PageState::resident);
  EXPECT_FALSE(machine.kernel().look(machine.address_of(0)).write_protected);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// The place that MREMAP_DONTUNMAP leaves reads as zeros, also where a page was lost: it went with the others.
TEST(PageMachineCase, ALostPageThatMovesLeavesAnEmptyPlace) {
  MachineOptions options = fifo_options();
  options.direct = false;
  options.device_failures = true;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 4);
  machine.device()->faults.reads = 1;
  ASSERT_FALSE(machine.touch(1, false));
  machine.device()->faults = {};
  auto target = static_cast<std::intptr_t>(machine.address_of(8));
  EXPECT_EQ(machine.pager().remap(machine.address_of(0), bytes_of_pages(4), bytes_of_pages(4),
                                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, machine.address_of(8)),
            target);
  machine.adopt_all();
  EXPECT_TRUE(machine.touch(1, false));
  EXPECT_FALSE(machine.touch(9, false));
  EXPECT_TRUE(machine.touch(10, false));
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Copying from it would wait for the fault handler, which would wait for the evictor.
TEST(PageMachineCase, APageThatTheProgramDroppedBehindOurBackIsNotCopied) {
  MachineOptions options = fifo_options();
  options.take_by_move = false;
  PageMachine machine(options, 1);
  machine.map(0, 4, kReadWrite);
  for (std::uint32_t page = 0; page < 4; ++page) machine.write(page);
  iovec range{reinterpret_cast<void*>(machine.address_of(1)), kPageSize};
  machine.kernel().discard({&range, 1});
  machine.evict(4);
  EXPECT_EQ(machine.kernel().violations(), "");
  EXPECT_EQ(machine.core().pages[{1}].load().state(), PageState::untouched);
}

// The kernel has no memory for a moment: what comes in, what comes back out of its frame and what mremap copies waits
// for it, and nothing is lost.
TEST(PageMachineCase, WhereTheKernelHasNoMemoryPagesWaitForIt) {
  MachineOptions options = fifo_options();
  options.take_by_move = options.features.move = false;
  PageMachine machine(options, 1);
  auto short_of_memory = [&] { machine.kernel().failures = {.copies = 2, .copy_error = -ENOMEM}; };
  fill_and_evict(machine, 4);
  machine.write(2);
  short_of_memory();
  machine.read(1);
  EXPECT_EQ(machine.kernel().failures.copies, 0);
  machine.evict(1);  // page 2 into a frame, then page 1, which is clean and makes room at once
  ASSERT_EQ(machine.core().pages[{2}].load().state(), PageState::parked);
  short_of_memory();
  machine.write(2);
  EXPECT_EQ(machine.kernel().failures.copies, 0);
  machine.map(4, 1, kReadWrite);  // in the way, so that it moves
  short_of_memory();
  machine.remap(0, 4, 8);
  EXPECT_EQ(machine.kernel().failures.copies, 0);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// I4: the message was on its way when the page was lost.
TEST(PageMachineCase, ALateFaultOnALostPageIsAnsweredWithItsMark) {
  MachineOptions options = fifo_options();
  options.direct = false;
  options.device_failures = true;
  PageMachine machine(options, 1);
  fill_and_evict(machine, 2);
  FakeKernel::Outcome late = machine.kernel().access(machine.address_of(1), false);
  ASSERT_EQ(late.result, FakeKernel::Access::fault);
  machine.device()->faults.reads = 1;
  ASSERT_FALSE(machine.touch(1, true));
  machine.serve(late.message);
  EXPECT_FALSE(machine.kernel().look(machine.address_of(1)).waiting);
  EXPECT_EQ(machine.kernel().access(machine.address_of(1), false).result, FakeKernel::Access::bus_error);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// A thread of the program touched the place that mremap moves to, after it was mapped and before the pages came.
TEST(PageMachineCase, MovedPagesReplaceWhatWasReadAheadAtTheirPlace) {
  class KernelThatMapsBehind final : public FakeKernel {
   public:
    using FakeKernel::FakeKernel;
    std::uintptr_t behind = 0;  // touched as soon as its mapping is registered
    PageMachine* machine = nullptr;
    int register_range(std::uintptr_t address, std::size_t length) override {
      int error = FakeKernel::register_range(address, length);
      if (behind - address < length) {
        FaultMessage message{behind, 0, false, false};
        behind = 0;
        machine->serve(message);
      }
      return error;
    }
  };
  MachineOptions options = fifo_options();
  auto kernel = std::make_unique<KernelThatMapsBehind>(options.features);
  KernelThatMapsBehind& touching = *kernel;
  PageMachine machine(options, 1, std::move(kernel));
  touching.machine = &machine;
  machine.map(0, 2, kReadWrite);
  machine.write(0);
  machine.write(1);
  std::array<std::byte, kPageSize> written;
  machine.kernel().load(written.data(), machine.address_of(1), kPageSize);
  touching.behind = machine.address_of(21);
  ASSERT_GT(machine.pager().remap(machine.address_of(0), bytes_of_pages(2), bytes_of_pages(2),
                                  MREMAP_MAYMOVE | MREMAP_FIXED, machine.address_of(20)),
            0);
  EXPECT_EQ(touching.behind, 0u);
  std::array<std::byte, kPageSize> moved;
  machine.kernel().load(moved.data(), machine.address_of(21), kPageSize);
  EXPECT_EQ(moved, written);
  machine.kernel().unmapped(machine.address_of(0), bytes_of_pages(2));
  machine.adopt_all();
  EXPECT_EQ(machine.check_invariants(0), "");
}

// MOVE refuses it because its protection differs from the frames'; a copy without protection could miss a write.
TEST(PageMachineCase, AWritablePageThatMoveRefusesStaysWithoutWriteProtection) {
  MachineOptions options = fifo_options();
  options.features.write_protect = false;
  PageMachine machine(options, 1);
  machine.map(0, 2, kReadWrite | PROT_EXEC);
  machine.map(2, 2, kReadWrite);
  for (std::uint32_t page = 0; page < 4; ++page) machine.write(page);
  machine.protect(3, 1, PROT_READ);
  machine.evict(4);
  EXPECT_EQ(machine.core().pages[{0}].load().state(), PageState::resident);
  EXPECT_NE(machine.core().pages[{2}].load().state(), PageState::resident);
  EXPECT_NE(machine.core().pages[{3}].load().state(), PageState::resident);
  EXPECT_EQ(machine.check_invariants(0), "");
}

std::uint64_t counted(Counter counter) { return stat_page()->counters[counter]; }

// Runs of pages that are written, read from a device that is asked or copied from where they lie.
class RunsThatAreWritten : public ::testing::TestWithParam<bool> {
 protected:
  RunsThatAreWritten() {
    MachineOptions options = fifo_options();
    options.direct = GetParam();
    machine.emplace(options, 1);
    machine->map(0, kPages, kReadWrite);
  }
  void use(std::uint32_t page, bool write) {
    write ? machine->write(page) : machine->read(page);
    if (machine->core().budget.should_start()) machine->evict(16);
  }
  void use_all(bool write) {
    for (std::uint32_t page = 0; page < kPages; ++page) use(page, write);
  }
  void expect_all_right() {
    EXPECT_EQ(machine->failure(), "");
    EXPECT_EQ(machine->check_invariants(0), "");
  }
  static constexpr std::uint32_t kPages = 400;
  std::optional<PageMachine> machine;
};

TEST_P(RunsThatAreWritten, HoldWhatWasWritten) {
  for (int round = 0; round < 2; ++round) use_all(true);
  expect_all_right();
}

// I7: to a pipe or a socket that has it, a page is another one once it has left. A reference is no pin: MOVE takes
// the page all the same.
TEST_P(RunsThatAreWritten, AreNotFilledIntoWhatSomebodyHolds) {
  for (int round = 0; round < 4; ++round)
    for (std::uint32_t page = 0; page < kPages; ++page) {
      use(page, true);
      if (round % 2 == 0 && page % 40 == 0) machine->send(page);
    }
  expect_all_right();
}

// Out of its frame it is copied, and the frame is somebody else's until the kernel gets it back.
TEST_P(RunsThatAreWritten, LeaveTheFrameTheyAreReadFromAsItWas) {
  machine->write(0);
  machine->send(0);
  ASSERT_EQ(machine->parts().direct->take(1), 1u);
  machine->parts().direct->settle_taken();
  ASSERT_EQ(machine->core().pages[{0}].load().state(), PageState::parked);
  machine->read(0);
  expect_all_right();
}

// What is only read comes in protected, and leaves without being written.
TEST_P(RunsThatAreWritten, AreNotThoseThatAreOnlyRead) {
  use_all(true);
  use_all(false);
  std::uint64_t written = counted(Counter::pages_out);  // the last of what was changed
  use_all(false);
  EXPECT_EQ(counted(Counter::pages_out), written);
  expect_all_right();
}

TEST_P(RunsThatAreWritten, AreWholeWhereTheKernelMapsAFewAtATime) {
  machine->kernel().failures.partial_pages = 2;
  for (int round = 0; round < 2; ++round) use_all(true);
  expect_all_right();
}
INSTANTIATE_TEST_SUITE_P(Each, RunsThatAreWritten, ::testing::Bool(),
                         [](const auto& direct) { return direct.param ? "Direct" : "Queued"; });

// A stream over a device that takes its time: the next window is asked for ahead, its first page kept.
// More than the device takes at a time (24 pages), and more than is collected (128).
class FaultsThatAreServedTogether : public ::testing::Test {
 protected:
  FaultsThatAreServedTogether() {
    options.direct = false;
    options.device_failures = true;
    options.budget_pages = 200;
    options.parts.read_ahead = false;  // their distances are equal
    machine.emplace(options, 1);
    machine->map(0, kPages, kReadWrite);
    for (std::uint32_t page = 0; page < kPages; ++page) machine->write(page);
    for (int i = 0; i < 20; ++i) machine->evict(kPages);
    for (std::uint32_t i = 0; i < 150; ++i) scattered.push_back(i * 37 % kPages);
  }
  static constexpr std::uint32_t kPages = 400;
  MachineOptions options = fifo_options();
  std::optional<PageMachine> machine;
  std::vector<std::uint32_t> scattered;
};

TEST_F(FaultsThatAreServedTogether, AllGetTheirPages) {
  std::uint64_t before = counted(Counter::faults_read);
  machine->read_together(scattered);
  EXPECT_GE(counted(Counter::faults_read) - before, 140u);
  EXPECT_EQ(machine->lost_pages_seen(), 0u);
  EXPECT_EQ(machine->failure(), "");
  EXPECT_EQ(machine->check_invariants(0), "");
}

TEST_F(FaultsThatAreServedTogether, ADeviceThatFailsSomeLosesNoOthers) {
  machine->device()->faults.reads = 0.3;
  machine->read_together(scattered);
  machine->device()->faults.reads = 0;
  EXPECT_GT(machine->lost_pages_seen(), 10u);
  EXPECT_LT(machine->lost_pages_seen(), 100u);
  for (std::uint32_t page = 0; page < kPages; ++page) machine->read(page);
  EXPECT_EQ(machine->failure(), "");
  EXPECT_EQ(machine->check_invariants(0), "");
}

// Who serves over such a device does not look for arrivals afterwards.
TEST(PageMachineCase, ADeviceThatAnswersAtOnceHasNothingInFlightAfterAMessage) {
  MachineOptions options = fifo_options();
  options.far_url = "zmem:";
  PageMachine machine(options, 1);
  machine.map(0, 8, kReadWrite);
  for (std::uint32_t page = 0; page < 8; ++page) machine.write(page);
  for (int i = 0; i < 4; ++i) machine.evict(8);
  for (std::uint32_t page = 0; page < 8; ++page) {
    FakeKernel::Outcome outcome = machine.kernel().access(machine.address_of(page), false);
    if (outcome.result != FakeKernel::Access::fault) continue;
    machine.parts().handlers.first().serve_all({&outcome.message, 1});
    EXPECT_EQ(machine.parts().handlers.first().in_flight(), 0u) << page;
    machine.read(page);
  }
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
}

class ReadAheadMarker : public ::testing::Test {
 protected:
  ReadAheadMarker() {
    MachineOptions options = fifo_options();
    options.direct = false;
    machine.emplace(options, 1);
    machine->map(0, 64, kReadWrite);
    for (std::uint32_t page = 0; page < 64; ++page) machine->write(page);
    machine->evict(64), machine->evict(64);
    for (std::uint32_t page = 0; page < 12 && marker == 0; ++page) {
      machine->read(page);
      for (std::uint32_t at = page + 1; at < 64; ++at)
        if (machine->core().pages[{at}].load().fetched()) marker = at;
    }
  }
  PageWord word(std::uint32_t page) { return machine->core().pages[{page}].load(); }
  std::optional<PageMachine> machine;
  std::uint32_t marker = 0;
};

TEST_F(ReadAheadMarker, IsFarStillButNeedsNoDevice) {
  ASSERT_NE(marker, 0u);
  EXPECT_EQ(word(marker).state(), PageState::far);
  EXPECT_FALSE(word(marker).busy());
  EXPECT_EQ(word(marker + 1).state(), PageState::resident);
  EXPECT_EQ(machine->check_invariants(0), "");
  machine->device()->faults.reads = 1;
  machine->read(marker);
  EXPECT_EQ(word(marker).state(), PageState::resident);
  EXPECT_EQ(machine->failure(), "");
}

TEST_F(ReadAheadMarker, IsForgottenWhenThePageChanges) {
  ASSERT_NE(marker, 0u);
  far::FarPage kept = word(marker).far_page();
  // All is written anew until this page lies at the same place of the device again, with other bytes. The pages come
  // in by hints, so that the handler, which has the kept copy, sees no stream and keeps no other.
  for (int tries = 0; tries < 200 && (tries == 0 || word(marker).far_page() != kept); ++tries) {
    for (std::uint32_t page = 0; page < 64; ++page) {
      Hint hint{};
      hint.address = machine->address_of(page);
      hint.size = 1;
      machine->hint(hint);
      machine->write(page);
    }
    while (word(marker).state() != PageState::far) machine->evict(64);
    EXPECT_FALSE(word(marker).fetched());
  }
  EXPECT_EQ(word(marker).far_page(), kept);
  machine->read(marker);  // compares
  EXPECT_EQ(machine->failure(), "");
  machine->drop(marker, 1);
  machine->read(marker);
  EXPECT_EQ(machine->failure(), "");
  EXPECT_EQ(machine->check_invariants(0), "");
}

TEST_F(ReadAheadMarker, AStreamThroughAllReadsWhatWasWritten) {
  std::uint64_t before = counted(Counter::pages_read_ahead);
  for (int round = 0; round < 3; ++round) {
    machine->evict(64);
    for (std::uint32_t page = 0; page < 64; ++page) machine->read(page);
  }
  EXPECT_GT(counted(Counter::pages_read_ahead) - before, 60u);
  EXPECT_EQ(machine->failure(), "");
  EXPECT_EQ(machine->check_invariants(0), "");
}

// Reading ahead in steps: what is brought holds what was written, over devices that answer at once and that do not.
TEST(PageMachineCase, AStreamThatStepsOverPagesReadsWhatWasWritten) {
  for (bool direct : {true, false})
    for (int stride : {8, -8}) {
      MachineOptions options = fifo_options();
      options.direct = direct;
      options.budget_pages = 256;
      options.window_pages = 1024;
      PageMachine machine(options, 1);
      machine.map(0, 1024, kReadWrite);
      for (std::uint32_t page = 0; page < 1024; ++page) machine.write(page);
      for (int i = 0; i < 6; ++i) machine.evict(64);
      std::uint64_t faults = counted(Counter::faults_read), ahead = counted(Counter::pages_read_ahead);
      for (int i = 0; i < 64; ++i) machine.read(static_cast<std::uint32_t>(stride > 0 ? i * 8 : 1023 - i * 8));
      EXPECT_LT(counted(Counter::faults_read) - faults, 64u - 40u);
      EXPECT_GE(counted(Counter::pages_read_ahead) - ahead, 40u);
      EXPECT_EQ(machine.failure(), "");
      EXPECT_EQ(machine.check_invariants(0), "");
    }
}

// I4: what was only brought ahead, and does not come, is not given up.
TEST(PageMachineCase, APageReadAheadInStepsThatDoesNotComeIsNotLost) {
  MachineOptions options = fifo_options();
  options.direct = false;
  options.budget_pages = 256;
  options.window_pages = 1024;
  PageMachine machine(options, 1);
  machine.map(0, 1024, kReadWrite);
  for (std::uint32_t page = 0; page < 1024; ++page) machine.write(page);
  for (int i = 0; i < 6; ++i) machine.evict(64);
  for (std::uint32_t page : {0u, 8u, 16u}) machine.read(page);
  // The page that is asked for comes, the one ahead of it does not. Chance is asked which one is next, and whether it
  // fails.
  machine.device()->decide = [asked = 0](std::size_t) mutable { return std::size_t{asked++ == 3 ? 1u : 0u}; };
  machine.device()->faults.reads = 0.5;
  machine.read(24);
  EXPECT_EQ(machine.core().pages[{32}].load().state(), PageState::far);
  EXPECT_EQ(machine.core().pages[{24}].load().state(), PageState::resident);
  machine.device()->faults.reads = 0;
  machine.device()->decide = nullptr;
  for (std::uint32_t page = 0; page < 1024; ++page) machine.read(page);
  EXPECT_EQ(machine.lost_pages_seen(), 0u);
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
}

// The child has no thread that would gather what is on its way, and the parent's memory is copied as it is.
TEST(PageMachineCase, WhatHintsBeganToFetchIsThereBeforeTheProgramForks) {
  MachineOptions options = fifo_options();
  options.far_url = "sim:latency=20ms,inner=mem:";
  PageMachine machine(options, 1);
  machine.map(0, 8, kReadWrite);
  for (std::uint32_t page = 0; page < 8; ++page) machine.write(page);
  machine.evict(8), machine.evict(8);
  Hint hint{};
  hint.address = machine.address_of(2);
  hint.size = 1;
  machine.begin_hint(hint);
  ASSERT_TRUE(machine.core().pages[{2}].load().busy());
  ASSERT_EQ(machine.pager().before_fork(), 0);
  EXPECT_FALSE(machine.core().pages[{2}].load().busy());
  machine.pager().after_fork_in_parent(false);
  for (std::uint32_t page = 0; page < 8; ++page) machine.read(page);
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
}

// The two steps of the evictor by two threads: in between, a page is busy, and who wants it waits.
TEST(PageMachineCase, APageThatIsTakenButNotSettledComesBackWhenItIs) {
  PageMachine machine(fifo_options(), 1);
  machine.map(0, 8, kReadWrite);
  for (std::uint32_t page = 0; page < 8; ++page) machine.write(page);
  Evictor& evictor = *machine.parts().direct;
  EXPECT_EQ(evictor.take(4), 4u);
  EXPECT_EQ(evictor.take(4), std::nullopt) << "one batch at a time";
  EXPECT_TRUE(machine.core().pages[{0}].load().busy());
  FaultMessage message{};
  message.address = machine.address_of(0);
  machine.serve(message);
  EXPECT_TRUE(machine.core().pages[{0}].load().waiters());
  evictor.settle_taken();
  EXPECT_EQ(machine.core().pages[{0}].load().state(), PageState::parked);
  for (std::uint32_t page = 0; page < 8; ++page) machine.read(page);
  EXPECT_EQ(machine.failure(), "");
  EXPECT_EQ(machine.check_invariants(0), "");
  EXPECT_EQ(evictor.take(2), 2u);
  evictor.reclaim(2);  // settles what was left
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Who holds the one evictor may wait for frames that the other has taken: the settler must not wait for him.
TEST(PageMachineCase, ABusyEvictorDoesNotKeepOthersFromBeingSettled) {
  PageMachine machine(fifo_options(), 1);
  machine.map(0, 8, kReadWrite);
  for (std::uint32_t page = 0; page < 8; ++page) machine.write(page);
  Evictor &busy = *machine.parts().direct, &other = *machine.parts().background;
  Companions companions;
  Settler settler(companions);
  EXPECT_EQ(busy.take(2), 2u);
  EXPECT_EQ(other.take(2), 2u);
  settler.call(0, busy);
  settler.call(1, other);
  busy.mutex().lock();
  EXPECT_FALSE(settler.settle_all());
  EXPECT_EQ(machine.core().pages[{2}].load().state(), PageState::parked);
  EXPECT_TRUE(machine.core().pages[{0}].load().busy());
  busy.mutex().unlock();
  EXPECT_TRUE(settler.settle_all());
  EXPECT_EQ(machine.core().pages[{0}].load().state(), PageState::parked);
  EXPECT_EQ(machine.check_invariants(0), "");
}

// Fork wants no page on its way: who pauses the handler settles what it took.
TEST(PageMachineCase, WhoPausesTheHandlerSettlesWhatItTook) {
  PageMachine machine(fifo_options(), 1);
  machine.map(0, 8, kReadWrite);
  for (std::uint32_t page = 0; page < 8; ++page) machine.write(page);
  EXPECT_EQ(machine.parts().direct->take(4), 4u);
  machine.parts().handlers.pause();
  for (std::uint32_t page = 0; page < 8; ++page) EXPECT_FALSE(machine.core().pages[{page}].load().busy());
  machine.parts().handlers.resume();
  EXPECT_EQ(machine.check_invariants(0), "");
}

// A handler too many would be written over whatever lies behind the last one's place.
TEST(PageMachineCase, ThereAreNoMoreHandlersThanPlacesForThem) {
  PageMachine machine(fifo_options(), 1);
  HandlerTeam& handlers = machine.parts().handlers;
  while (handlers.lanes() < Attendance::kHandlersMax) ASSERT_TRUE(handlers.add().has_value());
  auto one_more = handlers.add();
  ASSERT_FALSE(one_more.has_value());
  EXPECT_EQ(one_more.error().code(), EAGAIN);
  EXPECT_EQ(handlers.lanes(), Attendance::kHandlersMax);
  EXPECT_FALSE(handlers.wants_start());
}

// Each refault of a parked page is one more local page until the frame expires: I5 holds without the background's
// help.
TEST(PageMachineCase, RefaultsStayWithinTheBudget) {
  MachineOptions options = fifo_options();
  options.frames = 256;
  PageMachine machine(options, 1);
  machine.map(0, 400, kReadWrite);
  std::int64_t most = 0;
  for (int round = 0; round < 40; ++round) {
    for (std::uint32_t page = 0; page < 400; page += 3) machine.write((page * 7 + 1) % 400);
    machine.evict(20);
    for (std::uint32_t page = 0; page < 400; ++page) {
      machine.read(page * 11 % 400);
      most = std::max(most, machine.core().budget.local());
    }
  }
  EXPECT_EQ(machine.check_invariants(0), "");
  EXPECT_LE(most, machine.core().budget.limit() + 1);
}

// malloc waits for pages, and is no cancellation point.
TEST(PageMachineCase, AThreadThatWaitsForAPageIsNotCancelled) {
  PageMachine machine(fifo_options(), 1);
  machine.map(0, 1, kReadWrite);
  machine.write(0);
  PageWord word;
  ASSERT_TRUE(machine.core().pages[{0}].try_lock(&word));
  auto waits = [](void* of) -> void* {
    Core& core = static_cast<PageMachine*>(of)->core();
    core.transitions.none({0}, core.lock_waiting({0}));
    return of;
  };
  pthread_t thread;
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&thread, nullptr, waits, &machine), 0);
  EXPECT_EQ(pthread_cancel(thread), 0);
  usleep(20'000);
  machine.core().transitions.none({0}, word);
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, &machine);
  EXPECT_EQ(machine.check_invariants(0), "");
}

}  // namespace
}  // namespace hinterland::testing
