// Each part of the runtime that --without leaves out really is out, and nothing is lost without it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

std::uint64_t counted(Counter counter) { return stat_page()->counters[counter]; }

Parts without(bool Parts::* part) {
  Parts parts;
  if (part != nullptr) parts.*part = false;
  return parts;
}

// --- over the fake kernel, step by step ---------------------------------------------------------------------------

// How many pages the pager unmaps or moves at once.
class Watched : public FakeKernel {
 public:
  using FakeKernel::FakeKernel;
  std::size_t most_unmapped = 0, most_moved = 0;
  std::function<void()> on_leaving;  // before pages are moved away

  int discard(std::span<const iovec> ranges) override {
    std::size_t bytes = 0;
    for (const iovec& range : ranges) bytes += range.iov_len;
    most_unmapped = std::max(most_unmapped, bytes >> kPageShift);
    return FakeKernel::discard(ranges);
  }
  std::int64_t move(std::uintptr_t target, std::uintptr_t source, std::size_t length) override {
    most_moved = std::max(most_moved, length >> kPageShift);
    if (on_leaving) on_leaving();
    return FakeKernel::move(target, source, length);
  }
};

class Machine {
 public:
  explicit Machine(bool Parts::* part) : kernel_(new Watched(FakeKernel::all_features())) {
    MachineOptions options;
    options.policy = &kSecondChancePolicy;
    options.parts = without(part);
    machine_ = std::make_unique<PageMachine>(options, 1, std::unique_ptr<FakeKernel>(kernel_));
    machine_->map(0, kPages, kReadWrite);
    for (std::uint32_t page = 0; page < kPages; ++page) machine_->write(page);
  }
  ~Machine() {
    EXPECT_EQ(machine_->check_invariants(0), "");
    EXPECT_EQ(machine_->failure(), "");
  }

  static constexpr std::uint32_t kPages = 64;
  PageMachine* operator->() { return machine_.get(); }
  Watched& kernel() { return *kernel_; }
  PageState state(std::uint32_t page) { return machine_->core().pages[{page}].load().state(); }
  std::uint32_t count_in(PageState state_wanted) {
    std::uint32_t found = 0;
    for (std::uint32_t page = 0; page < kPages; ++page) found += state(page) == state_wanted;
    return found;
  }
  void evict_all() {
    for (int round = 0; round < 100 && machine_->core().budget.local() > 0; ++round) machine_->evict(kPages);
    ASSERT_EQ(machine_->core().budget.local(), 0);
  }

 private:
  Watched* kernel_;  // the machine owns it
  std::unique_ptr<PageMachine> machine_;
};

TEST(PartsTest, SecondChanceKeepsFramesOrNone) {
  Machine with(nullptr), without(&Parts::second_chance);
  with->evict(16);
  without->evict(16);
  EXPECT_GT(with.count_in(PageState::parked), 0u);
  EXPECT_EQ(without.count_in(PageState::parked), 0u);
  EXPECT_GE(without.count_in(PageState::far), 16u);
}

TEST(PartsTest, BatchingOrOnePageAtATime) {
  for (bool dirty : {true, false}) {
    Machine with(nullptr), without(&Parts::batching);
    for (Machine* each : {&with, &without}) {
      if (!dirty) {
        each->evict_all();
        for (std::uint32_t page = 0; page < 32; ++page) (*each)->read(page);
      }
      each->kernel().most_moved = each->kernel().most_unmapped = 0;
      (*each)->core().second_chance.enabled = false;  // clean pages are unmapped
      (*each)->core().budget.park_nothing();
      for (int round = 0; round < 4; ++round) (*each)->evict(8);
    }
    EXPECT_GT(dirty ? with.kernel().most_moved : with.kernel().most_unmapped, 1u) << dirty;
    EXPECT_EQ(without.kernel().most_moved, dirty ? 1u : 0u);
    EXPECT_LE(without.kernel().most_unmapped, dirty ? 256u : 1u);  // of frames, of pages
  }
}

TEST(PartsTest, FeedbackStopsSecondChancesThatDoNotPay) {
  Machine with(nullptr), without(&Parts::feedback);
  for (Machine* each : {&with, &without}) {
    each->evict_all();
    for (std::uint32_t page = 0; page < 16; ++page) (*each)->read(page);
    (*each)->evict(8);
  }
  EXPECT_LE(with.count_in(PageState::parked), 2u);  // one in 16 is tried all the same
  EXPECT_GE(without.count_in(PageState::parked), 8u);
}

// Over a device that answers at once a frame is worth nothing to a clean page, however often second chances are
// taken.
TEST(PartsTest, CleanPagesGetNoFrameWhereThatSavesNoFetch) {
  Machine slow(nullptr), fast(nullptr);
  fast->core().second_chance.saves_a_fetch = false;
  for (Machine* each : {&slow, &fast}) {
    each->evict_all();
    for (int hit = 0; hit < 4096; ++hit) (*each)->core().second_chance.note_hit();
    for (std::uint32_t page = 0; page < 16; ++page) (*each)->read(page);
    (*each)->evict(8);
  }
  EXPECT_GE(slow.count_in(PageState::parked), 8u);
  EXPECT_EQ(fast.count_in(PageState::parked), 0u);
}

TEST(PartsTest, FeedbackTellsTheHandlerToTakeScatteredPages) {
  Machine with(nullptr), without(&Parts::feedback);
  for (Machine* each : {&with, &without})
    for (int i = 0; i < 32; ++i) (*each)->core().flush_share.note(200, 256);
  EXPECT_TRUE(with->core().flush_share.high());
  EXPECT_FALSE(without->core().flush_share.high());
}

std::uint64_t protection_faults_of_rewriting(Machine& machine) {
  std::uint64_t before = counted(Counter::faults_write_protect);
  for (int round = 0; round < 8; ++round) {
    machine.evict_all();
    for (std::uint32_t page = 0; page < 32; ++page) {
      machine->read(page);
      machine->write(page);
    }
  }
  return counted(Counter::faults_write_protect) - before;
}

TEST(PartsTest, WriteForecastSavesProtectionFaults) {
  Machine with(nullptr), without(&Parts::write_forecast);
  EXPECT_LT(protection_faults_of_rewriting(with), 128u);
  EXPECT_EQ(protection_faults_of_rewriting(without), 256u);
}

std::uint64_t pages_read_ahead(Machine& machine) {
  std::uint64_t before = counted(Counter::pages_read_ahead);
  machine.evict_all();
  for (std::uint32_t page = 0; page < 32; ++page) machine->read(page);
  return counted(Counter::pages_read_ahead) - before;
}

TEST(PartsTest, ReadAhead) {
  Machine with(nullptr), without(&Parts::read_ahead);
  EXPECT_GT(pages_read_ahead(with), 16u);
  EXPECT_EQ(pages_read_ahead(without), 0u);
}

TEST(PartsTest, FeedbackKeepsMoreInHandWhereItWasUsedUp) {
  Machine with(nullptr), without(&Parts::feedback);
  for (Machine* each : {&with, &without}) {
    Budget& budget = (*each)->core().budget;
    budget.set_limit(bytes_of_pages(12800));
    std::int64_t before = budget.pages_until_stop();
    budget.note_reclaimed(0);
    EXPECT_EQ(budget.pages_until_stop() - before, each == &with ? 200 : 0);
  }
}

TEST(PartsTest, BackgroundReclaimKeepsRoomOrWaitsUntilThereIsNone) {
  Machine with(nullptr), without(&Parts::background_reclaim);
  for (Machine* each : {&with, &without}) {
    Budget& budget = (*each)->core().budget;
    budget.set_limit(bytes_of_pages(static_cast<std::size_t>(budget.local() + 4)));
  }
  EXPECT_TRUE(with->core().budget.should_start());
  EXPECT_FALSE(without->core().budget.should_start());
  without->core().budget.set_limit(bytes_of_pages(static_cast<std::size_t>(without->core().budget.local() - 1)));
  EXPECT_TRUE(without->core().budget.should_start());  // I5
}

// Hermit 4.3, where the device takes its time: the page is asked for before others leave for it.
TEST(ReclaimAsHermitTest, APageIsAskedForBeforeThereIsRoomForIt) {
  for (bool as_hermit : {false, true}) {
    auto* kernel = new Watched(FakeKernel::all_features());
    MachineOptions options;
    options.policy = &kSecondChancePolicy;
    options.direct = false;
    options.read_ahead_pages = 0;
    PageMachine machine(options, 1, std::unique_ptr<FakeKernel>(kernel));
    if (as_hermit) {
      machine.core().hermit = std::make_unique<Hermit>();
      ASSERT_TRUE(machine.core().hermit->create(machine.core().budget, options.window_pages, 1));
    }
    machine.map(0, 2 * options.budget_pages, kReadWrite);
    for (std::uint32_t page = 0; page < 2 * options.budget_pages; ++page) machine.write(page);
    std::uint32_t far = 0;
    while (machine.core().pages[{far}].load().state() != PageState::far) ++far;
    machine.core().budget.set_limit(bytes_of_pages(static_cast<std::size_t>(machine.core().budget.local())));
    std::uint64_t before = machine.device()->submitted, asked_when_first_left = 0;
    bool some_left = false;
    kernel->on_leaving = [&] {
      if (!some_left) asked_when_first_left = machine.device()->submitted - before;
      some_left = true;
    };
    machine.read(far);
    EXPECT_TRUE(some_left);
    EXPECT_EQ(asked_when_first_left, as_hermit ? 1u : 0u);
    kernel->on_leaving = nullptr;
    EXPECT_EQ(machine.check_invariants(0), "");
    EXPECT_EQ(machine.failure(), "");
  }
}

TEST(ReclaimAsHermitTest, NothingIsLostInRandomSteps) {
  for (bool direct : {true, false}) {
    MachineOptions options;
    options.policy = &kSecondChancePolicy;
    options.direct = direct;
    PageMachine machine(options, 7);
    machine.core().hermit = std::make_unique<Hermit>();
    ASSERT_TRUE(machine.core().hermit->create(machine.core().budget, options.window_pages, 2));
    for (int step = 0; step < 3000; ++step) machine.random_step();
    EXPECT_EQ(machine.check_invariants(0), "") << machine.last_step();
    EXPECT_EQ(machine.failure(), "");
  }
}

// --- with threads and the real kernel -----------------------------------------------------------------------------

constexpr std::uint32_t kMany = 4096;  // pages: four times the budget

// Changes a word of each page, in order or at random, and looks at all of them.
std::string change_and_compare(Pager& pager, bool scattered, std::uint32_t changes) {
  std::intptr_t mapped = pager.map(bytes_of_pages(kMany), kPageSize, kReadWrite);
  if (mapped < 0) return "cannot map";
  auto* words = reinterpret_cast<std::uint64_t*>(mapped);
  constexpr std::size_t kStep = kPageSize / sizeof *words;
  std::vector<std::uint64_t> shadow(kMany);
  std::mt19937_64 random(11);
  for (std::uint32_t i = 0; i < changes; ++i) {
    std::size_t page = scattered ? random() % kMany : i % kMany;
    words[page * kStep + page % kStep] = ++shadow[page];
  }
  for (std::size_t page = 0; page < kMany; ++page)
    if (words[page * kStep + page % kStep] != shadow[page]) return "page " + std::to_string(page) + " is wrong";
  std::string wrong = audit(pager, true);
  if (pager.unmap(static_cast<std::uintptr_t>(mapped), bytes_of_pages(kMany)) != 0) return "cannot unmap";
  return wrong;
}

class RealPartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  }
  // Whether `seen` becomes true with everything there (on a busy machine not in the first rounds), and stays false
  // without the part.
  static void expect_seen(bool Parts::* part, bool scattered, const std::function<bool()>& seen,
                          RealPagerOptions options = {}) {
    for (bool there : {true, false}) {
      options.parts = without(there ? nullptr : part);
      run_with_real_pager(options, [&](Pager& pager) -> std::string {
        for (int round = 0; round == 0 || (there && !seen() && round < 30); ++round)
          if (std::string wrong = change_and_compare(pager, scattered, 3 * kMany); !wrong.empty()) return wrong;
        return seen() == there ? "" : there ? "not seen with everything there" : "seen though it is left out";
      });
    }
  }
};

// Touches far pages one by one, until less is free than is usually kept in hand.
class FullBudget {
 public:
  explicit FullBudget(Pager& pager) : budget_(PagerParts::of(pager).core.budget) {
    words_ = reinterpret_cast<std::uint64_t*>(pager.map(bytes_of_pages(kMany), kPageSize, kReadWrite));
    for (std::size_t page = 0; page < kMany; ++page) word(page) = page;
  }
  // False when there was always more room, or none.
  bool fill() {
    for (std::uint32_t touches = 0; touches < 2 * kMany; ++touches) {
      std::size_t page = random_() % kMany;
      wrong_ = wrong_ || word(page) != page;
      if (std::int64_t free = budget_.free(); free >= 0 && free < kLittle) return true;
    }
    return false;
  }
  void touch_all() {
    for (std::size_t page = 0; page < kMany; ++page) wrong_ = wrong_ || word(page) != page;
  }
  bool wrong() const { return wrong_; }
  const Budget& budget() const { return budget_; }

 private:
  static constexpr std::int64_t kLittle = 16;  // pages: no low watermark is lower

  std::uint64_t& word(std::size_t page) { return words_[page * (kPageSize / sizeof *words_)]; }

  Budget& budget_;
  std::uint64_t* words_ = nullptr;
  std::mt19937_64 random_{11};
  bool wrong_ = false;
};

// Looks at what leaves while nobody faults. How much of the work the background gets while somebody does is up to the
// scheduler.
TEST_F(RealPartsTest, BackgroundReclaim) {
  auto taken = [] { return counted(Counter::reclaim_background_pages); };
  run_with_real_pager({}, [&](Pager& pager) -> std::string {
    FullBudget full(pager);
    for (int round = 0; round < 200; ++round) {
      std::uint64_t before = taken();
      full.fill();
      for (int looks = 0; looks < 200 && (taken() == before || full.budget().should_start()); ++looks) usleep(1'000);
      if (taken() != before && !full.budget().should_start()) return full.wrong() ? "a page is wrong" : "";
    }
    return "the background makes no room";
  });
  // Without it the background only brings back a budget that is exceeded, or was made smaller: now and then.
  RealPagerOptions left_out;
  left_out.parts = without(&Parts::background_reclaim);
  run_with_real_pager(left_out, [&](Pager& pager) -> std::string {
    FullBudget full(pager);
    for (int tries = 0; tries < 200; ++tries) {
      if (!full.fill()) continue;
      std::uint64_t before = taken();
      std::int64_t free = full.budget().free();
      usleep(100'000);
      if (taken() == before && full.budget().free() == free) return full.wrong() ? "a page is wrong" : "";
    }
    return "pages leave though the budget is not exceeded";
  });
}

// What is missing to the budget at once is more than one thread takes before it looks, whoever has the CPU.
std::string shrink_until(Pager& pager, const std::function<bool()>& seen, int rounds) {
  FullBudget pages(pager);
  for (int round = 0; round < rounds && !seen(); ++round) {
    if (pager.set_budget(2 * bytes_of_pages(kMany)) != 0) return "cannot raise the budget";
    pages.touch_all();
    if (pager.set_budget(Pager::kMinimumBudgetBytes) != 0) return "cannot lower the budget";
    // Nobody faults meanwhile: a fault would take pages by itself, and leave the reclaimer less than it may fall
    // behind by.
    for (int looks = 0; looks < 20'000 && pages.budget().free() < 0; ++looks) usleep(1'000);
    pages.fill();
  }
  return pages.wrong() ? "a page is wrong" : audit(pager, true);
}

TEST_F(RealPartsTest, SecondReclaimer) {
  if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
  auto helps = [] { return counted(Counter::reclaim_helps) != 0; };
  for (bool Parts::* part : {static_cast<bool Parts::*>(nullptr), &Parts::second_reclaimer, &Parts::feedback}) {
    RealPagerOptions options;
    options.parts = without(part);
    run_with_real_pager(options, [&](Pager& pager) -> std::string {
      // Else the reclaimer leaves scattered pages to the fault handler, which takes them while this thread sleeps.
      PagerParts::of(pager).core.flush_share.stay_low();
      if (std::string wrong = shrink_until(pager, helps, part == nullptr ? 300 : 2); !wrong.empty()) return wrong;
      return helps() == (part == nullptr) ? ""
             : part == nullptr            ? "it never helps"
                                          : "it helps though it is left out";
    });
  }
}

// In signal mode the handler is always on the CPU of the thread that faults. Where faults are messages it is there
// only while nothing else runs on that CPU, which no test can promise.
TEST_F(RealPartsTest, WriteBackThread) {
  if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
  RealPagerOptions signals;
  signals.faults_by_signal = true;
  expect_seen(&Parts::write_back_thread, true, [] { return has_thread("hl-write-back"); }, signals);
}

class RealHermitTest : public RealPartsTest {
 protected:
  static RealPagerOptions options(const std::string& far_url) {
    RealPagerOptions options;
    options.reclaim = Reclaim::hermit;
    options.far_url = far_url;
    options.budget_bytes = 12 * kMiB;  // more than the 8 MiB that are kept free at first
    return options;
  }
  static std::string fill(Pager& pager, std::intptr_t* mapped) {
    *mapped = pager.map(bytes_of_pages(2 * kMany), kPageSize, kReadWrite);
    if (*mapped < 0) return "cannot map";
    auto* words = reinterpret_cast<std::uint64_t*>(*mapped);
    for (std::size_t page = 0; page < 2 * kMany; ++page) words[page * kWords] = page;
    return "";
  }
  static std::string look(std::intptr_t mapped, const char* whose) {
    auto* words = reinterpret_cast<std::uint64_t*>(mapped);
    for (std::size_t page = 0; page < 2 * kMany; ++page)
      if (words[page * kWords] != page) return whose + (" page " + std::to_string(page)) + " is wrong";
    return "";
  }
  static constexpr std::size_t kWords = kPageSize / sizeof(std::uint64_t);
};

TEST_F(RealHermitTest, ItsThreadsReclaimAndOursIsNotThere) {
  for (const char* far_url : {"mem:", "sim:latency=20us,inner=mem:"})
    run_with_real_pager(options(far_url), [](Pager& pager) -> std::string {
      std::uint64_t before = counted(Counter::reclaim_background_pages);
      std::intptr_t mapped = 0;
      for (int round = 0; round < 100 && counted(Counter::reclaim_background_pages) == before; ++round) {
        if (std::string wrong = fill(pager, &mapped); !wrong.empty()) return wrong;
        if (std::string wrong = look(mapped, "a"); !wrong.empty()) return wrong;
        if (std::string wrong = audit(pager, true); !wrong.empty()) return wrong;
        pager.unmap(static_cast<std::uintptr_t>(mapped), bytes_of_pages(2 * kMany));
      }
      if (has_thread("hl-reclaim")) return "our own reclaimer is there, too";
      wait_for_thread("hl-reclaim-0");
      return counted(Counter::reclaim_background_pages) > before ? "" : "nothing is reclaimed in the background";
    });
}

TEST_F(RealHermitTest, AForkedChildHasItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  run_with_real_pager(options("mem:"), [](Pager& pager) -> std::string {
    std::intptr_t mapped = 0;
    if (std::string wrong = fill(pager, &mapped); !wrong.empty()) return wrong;
    if (pager.before_fork() != 0) return "cannot prepare a fork";
    pid_t child = fork();
    if (child == 0) {
      pager.after_fork_in_child();
      std::string wrong = look(mapped, "the child's");
      wait_for_thread("hl-reclaim-0");
      if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
      _exit(wrong.empty() ? 0 : 1);
    }
    pager.after_fork_in_parent(child > 0);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return "the child failed";
    return look(mapped, "the parent's");
  });
}

TEST_F(RealHermitTest, WithoutBackgroundReclaimThereIsNone) {
  RealPagerOptions left_out = options("mem:");
  left_out.parts = without(&Parts::background_reclaim);
  run_with_real_pager(left_out, [](Pager& pager) -> std::string {
    std::intptr_t mapped = 0;
    if (std::string wrong = fill(pager, &mapped); !wrong.empty()) return wrong;
    if (has_thread("hl-reclaim-0")) return "there is a thread of Hermit's";
    return look(mapped, "a");
  });
}

}  // namespace
}  // namespace hinterland::testing
