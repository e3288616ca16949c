// Runs of clean pages that a second thread helps to map: over a fake kernel, where it gets its turn in the middle of
// the handler's own calls, and with threads.
#include "paging/in/map_helper.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// Linux on which the helper runs while the handler maps something.
class KernelWithHelp final : public FakeKernel {
 public:
  using FakeKernel::FakeKernel;
  MapHelper* helper = nullptr;
  unsigned pieces_a_call = 1;

  std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) override {
    for (unsigned i = 0; helper != nullptr && !helping_ && i < pieces_a_call; ++i) {
      helping_ = true;
      helper->help();
      helping_ = false;
    }
    return FakeKernel::copy(target, source, length, protect);
  }

 private:
  bool helping_ = false;
};

// How the device has them.
enum class Pages : std::uint8_t { asked, asked_and_there_at_once, read_where_they_lie };
const char* name_of(Pages pages) {
  constexpr std::array kNames = {"Asked", "AskedAndThereAtOnce", "ReadWhereTheyLie"};
  return kNames[static_cast<std::size_t>(pages)];
}

// 1024 pages far, and a handler that may let itself be helped.
struct Scene {
  static constexpr std::uint32_t kPages = 1024;

  explicit Scene(Pages pages, bool device_fails = false) {
    MachineOptions options;
    options.policy = &kFifoPolicy;
    options.direct = pages == Pages::read_where_they_lie;
    options.at_once = pages == Pages::asked_and_there_at_once;
    options.device_failures = device_fails;
    options.read_ahead_pages = Fetcher::kRunMax;
    options.window_pages = kPages;
    options.budget_pages = 2 * kPages;  // a window is a sixteenth of it at most
    auto made = std::make_unique<KernelWithHelp>(options.features);
    kernel = made.get();
    machine = std::make_unique<PageMachine>(options, 1, std::move(made));
    machine->map(0, kPages, kReadWrite);
    for (std::uint32_t page = 0; page < kPages; ++page) machine->write(page);
    all_out();
    machine->parts().handlers.first().let_help(helper);
    helper.count_as_started();
    kernel->helper = &helper;
  }
  ~Scene() { kernel->helper = nullptr; }
  void all_out() {
    for (int round = 0; round < 100 && machine->core().budget.local() > 0; ++round) machine->evict(kPages);
  }
  void expect_all_right() {
    EXPECT_EQ(machine->failure(), "");
    EXPECT_EQ(machine->check_invariants(0), "");
    MapHelper::Piece left;
    EXPECT_FALSE(helper.take(&left));
    EXPECT_EQ(machine->parts().handlers.first().in_flight(), 0u);
  }

  Companions companions;
  MapHelper helper{companions};
  KernelWithHelp* kernel = nullptr;
  std::unique_ptr<PageMachine> machine;
};

class MapHelperTest : public ::testing::TestWithParam<Pages> {};

TEST_P(MapHelperTest, TheHelperAndTheHandlerMapARunTogether) {
  for (unsigned pieces : {1u, 2u, 64u}) {
    Scene scene(GetParam());
    scene.kernel->pieces_a_call = pieces;
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t page = 0; page < Scene::kPages; ++page) scene.machine->read(page);  // compares
      scene.all_out();
    }
    EXPECT_GE(scene.helper.mapped(), 32u) << pieces;  // of some 3 * 64 pieces
    scene.expect_all_right();
  }
}

// Nobody comes: the handler takes everything back.
TEST_P(MapHelperTest, AHelperThatNeverComesIsNotWaitedFor) {
  Scene scene(GetParam());
  scene.kernel->pieces_a_call = 0;
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) scene.machine->read(page);
  EXPECT_EQ(scene.helper.mapped(), 0u);
  scene.expect_all_right();
}

// I3: what the helper maps is clean still: the first write is noticed.
TEST_P(MapHelperTest, WhatTheHelperMapsIsProtected) {
  Scene scene(GetParam());
  scene.kernel->pieces_a_call = 64;
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) scene.machine->read(page);
  ASSERT_GE(scene.helper.mapped(), 16u);
  for (std::uint32_t page = 0; page < Scene::kPages; page += 3) scene.machine->write(page);
  scene.all_out();
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) scene.machine->read(page);
  scene.expect_all_right();
}

// The kernel does a part of a piece, or asks to come again.
TEST_P(MapHelperTest, WhatTheKernelRefusesIsTriedAgain) {
  Scene scene(GetParam());
  scene.kernel->pieces_a_call = 2;
  scene.kernel->failures.partial_pages = 5;
  scene.kernel->failures.copy_error = -EAGAIN;
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) {
    if (page % 10 == 5) scene.kernel->failures.copies = 1;
    scene.machine->read(page);
  }
  EXPECT_GE(scene.helper.mapped(), 10u);
  scene.expect_all_right();
}

INSTANTIATE_TEST_SUITE_P(Devices, MapHelperTest,
                         ::testing::Values(Pages::asked, Pages::asked_and_there_at_once, Pages::read_where_they_lie),
                         [](const auto& each) { return std::string(name_of(each.param)); });

// I4: what nobody asked for is not given up because it could not be read ahead, whoever tried.
TEST(MapHelperReads, OfPagesThatCannotBeReadOnlyTheOneThatIsWantedIsLost) {
  Scene scene(Pages::asked_and_there_at_once, true);
  PageMachine& machine = *scene.machine;
  std::uint64_t lost = 0;
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) {
    machine.device()->faults.reads = page % 200 > 100 && lost <= page / 200 ? 1 : 0;  // until the next run is read
    machine.read(page);
    lost = machine.lost_pages_seen();
  }
  EXPECT_EQ(lost, 5u);
  EXPECT_GE(scene.helper.mapped(), 16u);
  machine.device()->faults.reads = 0;
  scene.all_out();
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) machine.read(page);  // compares
  scene.expect_all_right();
}

// A region's device is connected later, and need not answer at once: what is read by two is waited for, while nobody
// looks after other faults.
TEST(MapHelperReads, RunsThatADeviceTakesItsTimeForAreNotWaitedFor) {
  Scene scene(Pages::asked_and_there_at_once);
  PageMachine& machine = *scene.machine;
  Core& core = machine.core();
  auto fetcher = std::move(*Fetcher::create(core));
  fetcher->let_help(scene.helper);
  constexpr std::uint32_t kFirst = Scene::kPages / 2;
  constexpr PageRun kRun{{kFirst}, Fetcher::kRunMax};
  machine.unmap(kFirst, kFirst);
  machine.add_second_device(2);
  machine.map(kFirst, kFirst, kReadWrite);
  for (std::uint32_t page = kFirst; page < Scene::kPages; ++page) machine.write(page);
  scene.all_out();
  for (PageIndex page = kRun.first; page < kRun.end(); page = page + 1) {
    PageWord word;
    ASSERT_TRUE(core.pages[page].try_lock(&word));
    ASSERT_EQ(word.far_page().device(), 1u);
    core.transitions.begin_arrival(page, word, false);
  }
  core.budget.add(kRun.count);
  fetcher->start(kRun, kRun.first, false);
  EXPECT_NE(fetcher->in_flight(), 0u);
  while (fetcher->in_flight() != 0) fetcher->progress();
  for (std::uint32_t page = 0; page < Scene::kPages; ++page) machine.read(page);  // compares
  scene.expect_all_right();
}

TEST(MapHelperQueue, RefusesWhatItHasNoRoomForAndGivesTheOldestFirst) {
  Companions companions;
  MapHelper helper(companions);
  MapHelper::Piece piece;
  EXPECT_FALSE(helper.ready());  // nobody has started it
  EXPECT_TRUE(helper.wants_start());
  EXPECT_FALSE(helper.take(&piece));
  std::uint32_t lent = 0;
  while (helper.lend({nullptr, lent, 0, 1})) ++lent;
  EXPECT_GE(lent, 16u);
  for (std::uint32_t i = 0; i < lent; ++i) {
    ASSERT_TRUE(helper.take(&piece));
    EXPECT_EQ(piece.transfer, i);
  }
  EXPECT_FALSE(helper.take(&piece));
  EXPECT_TRUE(helper.lend({nullptr, 7, 0, 1}));
  helper.after_fork_in_child();
  EXPECT_FALSE(helper.take(&piece));
}

// --- with threads and the real kernel -----------------------------------------------------------------------------

class RealMapHelperTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
  }
};

// Two threads go through their halves, one after the other's steps in no order, and change a page now and then.
std::string two_streams(Pager& pager) {
  constexpr std::size_t kPages = 16384, kStep = kPageSize / sizeof(std::uint64_t);  // 64 MiB; 16 of them local
  std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, kReadWrite);
  if (mapped < 0) return "cannot map";
  auto* words = reinterpret_cast<std::uint64_t*>(mapped);
  for (std::size_t page = 0; page < kPages; ++page) words[page * kStep + page % kStep] = page;
  std::array<std::string, 2> wrong;
  auto stream = [&](std::size_t half) {
    for (std::uint64_t round = 0; round < 3; ++round)
      for (std::size_t page = half * kPages / 2; page < (half + 1) * kPages / 2; ++page) {
        std::uint64_t& word = words[page * kStep + page % kStep];
        std::uint64_t expected = page % 97 == 0 ? page + round : page;
        if (word != expected && wrong[half].empty()) wrong[half] = "page " + std::to_string(page) + " is wrong";
        if (page % 97 == 0) ++word;
      }
  };
  std::thread other(stream, 1);
  stream(0);
  other.join();
  if (wrong[0].empty() && wrong[1].empty()) wrong[0] = audit(pager, true);
  pager.unmap(static_cast<std::uintptr_t>(mapped), bytes_of_pages(kPages));
  return wrong[0] + wrong[1];
}

// Whether a run is ever worth help depends on the machine, so the helper is asked for here.
TEST_P(RealMapHelperTest, StreamsReadWhatWasWritten) {
  RealPagerOptions options;
  options.far_url = GetParam();
  options.budget_bytes = 16 * kMiB;
  run_with_real_pager(options, [](Pager& pager) -> std::string {
    while (!PagerParts::of(pager).handlers.map_helper().ready()) usleep(1'000);  // as long as a test may take
    wait_for_thread("hl-map");
    return two_streams(pager);
  });
}

TEST_P(RealMapHelperTest, NobodyHelpsWhereHelpIsLeftOut) {
  RealPagerOptions options;
  options.far_url = GetParam();
  options.budget_bytes = 16 * kMiB;
  options.parts.second_mapper = false;
  run_with_real_pager(options, [](Pager& pager) -> std::string {
    std::string wrong = two_streams(pager);
    return !wrong.empty() ? wrong : has_thread("hl-map") ? "there is help though it is left out" : "";
  });
}

// A thread streams while the process forks, a few times: nothing is lent meanwhile, the child has help of its own,
// and both read what was written.
std::string forks_under_a_stream(Pager& pager) {
  constexpr std::size_t kPages = 8192, kStep = kPageSize / sizeof(std::uint64_t);
  std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, kReadWrite);
  if (mapped < 0) return "cannot map";
  auto* words = reinterpret_cast<volatile std::uint64_t*>(mapped);
  for (std::size_t page = 0; page < kPages; ++page) words[page * kStep] = page;
  auto wrong_pages = [words] {
    std::size_t wrong = 0;
    for (std::size_t page = 0; page < kPages; ++page) wrong += words[page * kStep] != page;
    return wrong;
  };
  std::atomic<bool> over{false};
  std::atomic<std::size_t> wrong{0};
  std::thread streaming([&] {
    while (!over.load()) wrong += wrong_pages();
  });
  std::string said;
  for (int round = 0; round < 6 && said.empty(); ++round) {
    usleep(20'000);
    pid_t child = pager.before_fork() == 0 ? fork() : -1;
    if (child == 0) {
      alarm(kHangSeconds);
      pager.after_fork_in_child();
      _exit(wrong_pages() + wrong_pages() == 0 ? 0 : 1);
    }
    pager.after_fork_in_parent(child > 0);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) said = "cannot fork";
    if (said.empty() && status != 0) said = "the child ended with status " + std::to_string(status);
  }
  over.store(true);
  streaming.join();
  return wrong.load() == 0 ? said : "the parent read something else than it wrote";
}

TEST_P(RealMapHelperTest, AForkWaitsForWhatIsLent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  RealPagerOptions options;
  options.far_url = GetParam();
  options.budget_bytes = 16 * kMiB;
  run_with_real_pager(options, forks_under_a_stream);
}

INSTANTIATE_TEST_SUITE_P(Devices, RealMapHelperTest,
                         ::testing::Values("mem:", "zmem:", "sim:latency=20us,inner=mem:"),
                         [](const auto& each) { return std::string(each.param, std::strcspn(each.param, ":")); });

}  // namespace
}  // namespace hinterland::testing
