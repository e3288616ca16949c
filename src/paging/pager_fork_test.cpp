// fork without exec over the real kernel: child and parent keep their data, for generations, while pages travel.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "far/test_support.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 3000;  // 12 MiB over a budget of 4
constexpr int kGenerations = 4;

// What page `page` holds after it was last written as `version`.
std::uint64_t content(std::uint32_t page, std::uint64_t version) {
  return version == 0 ? 0 : (page + 1) * 0x9e3779b97f4a7c15 ^ version;
}

// A process's view: its versions are in plain memory, copied by fork as the pages should be.
class Memory {
 public:
  Memory(Pager& pager) : pager_(pager), versions_(kPages) {
    base_ = static_cast<std::uintptr_t>(pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE));
  }
  void write(std::uint32_t page, std::uint64_t version) {
    versions_[page] = version;
    for (std::size_t i : {0u, 100u, 511u}) words(page)[i] = content(page, version) + (version == 0 ? 0 : i);
  }
  void write_some(std::mt19937_64& random, std::uint64_t version) {
    for (int i = 0; i < 1500; ++i) write(static_cast<std::uint32_t>(random() % kPages), version);
  }
  void heap_step(std::mt19937_64& random) {
    std::uint32_t first = static_cast<std::uint32_t>(random() % (kPages - 50));
    pager_.decommit(base_ + bytes_of_pages(first), bytes_of_pages(50));
    pager_.commit(base_ + bytes_of_pages(first), bytes_of_pages(50));
    std::fill_n(versions_.begin() + first, 50, 0);
  }
  // Pages that may still be on their way when the process forks.
  void begin_hints(std::mt19937_64& random) {
    for (int i = 0; i < 20; ++i)
      pager_.begin_hint({.address = base_ + random() % bytes_of_pages(kPages), .size = 1 + random() % 40'000});
  }
  std::string verify(const char* who) const {
    for (std::uint32_t page = 0; page < kPages; ++page)
      for (std::size_t i : {0u, 100u, 511u}) {
        std::uint64_t expected = content(page, versions_[page]) + (versions_[page] == 0 ? 0 : i);
        if (words(page)[i] != expected)
          return std::string(who) + ": page " + std::to_string(page) + " holds " + std::to_string(words(page)[i]) +
                 ", should hold " + std::to_string(expected);
      }
    return "";
  }

 private:
  volatile std::uint64_t* words(std::uint32_t page) const {
    return reinterpret_cast<volatile std::uint64_t*>(base_ + bytes_of_pages(page));
  }
  Pager& pager_;
  std::uintptr_t base_ = 0;
  std::vector<std::uint64_t> versions_;
};

// Shared by all generations; the descendants' verdicts arrive here, even when their parents are gone.
struct Board {
  std::atomic<int> begun{0}, ended{0};
  char wrong[1024] = {};
  void report(const std::string& text) {
    if (!text.empty()) std::snprintf(wrong, sizeof wrong, "%s", text.c_str());
    ended.fetch_add(1);
  }
};

pid_t fork_with(Pager& pager) {
  pid_t child = pager.before_fork() == 0 ? fork() : -1;
  if (child == 0)
    pager.after_fork_in_child();
  else
    pager.after_fork_in_parent(child > 0);
  return child;
}

// Waits for it. A sanitizer that found something ends a child with a status of its own.
std::string how_it_ended(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? "" : "a child ended with status " + std::to_string(status);
}

// The first thing that is wrong is told.
void note(std::string& wrong, const std::string& next) {
  if (wrong.empty()) wrong = next;
}

// Each generation changes pages, forks the next, and goes on changing; some end before their children.
void generation(Pager& pager, Memory& memory, Board& board, int number, std::uint64_t seed) {
  std::mt19937_64 random(seed * 100 + number);
  char name[32];
  std::snprintf(name, sizeof name, "generation %d", number);
  std::string wrong = memory.verify(name);
  memory.write_some(random, number * 1000 + 1);
  memory.heap_step(random);
  memory.begin_hints(random);
  if (number < kGenerations && wrong.empty()) {
    board.begun.fetch_add(1);
    pid_t child = fork_with(pager);
    if (child == 0) {
      alarm(kHangSeconds);
      generation(pager, memory, board, number + 1, seed);
      _exit(0);
    }
    if (child < 0) wrong = "fork failed";
    memory.write_some(random, number * 1000 + 2);
    if (number % 2 == 0 && number > 0) return board.report(wrong);  // the child outlives us
    if (wrong.empty()) wrong = memory.verify(name);
    if (child > 0) note(wrong, how_it_ended(child));
    memory.write_some(random, number * 1000 + 3);
  } else {
    usleep(200'000);  // until the parent is gone
    memory.write_some(random, number * 1000 + 4);
  }
  if (wrong.empty()) wrong = memory.verify(name);
  if (wrong.empty()) wrong = audit(pager, false);
  board.report(wrong);
}

std::string await(Board& board) {
  for (int i = 0; i < 3000 && board.ended.load() < board.begun.load(); ++i) usleep(10'000);
  if (board.wrong[0] != '\0') return board.wrong;
  return board.ended.load() == board.begun.load() ? "" : "a descendant did not come to its end";
}

Board* new_board() {
  return new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board;
}

std::string generations(Pager& pager, std::uint64_t seed) {
  Board& board = *new_board();
  Memory memory(pager);
  for (std::uint32_t page = 0; page < kPages; ++page) memory.write(page, 1);
  board.begun.fetch_add(1);
  generation(pager, memory, board, 0, seed);
  return await(board);
}

// Children one after the other, while another thread of the parent keeps the evictors busy.
std::string forks_while_pages_travel(Pager& pager, std::uint64_t seed) {
  Board& board = *new_board();
  Memory memory(pager), busy(pager);
  std::mt19937_64 random(seed);
  for (std::uint32_t page = 0; page < kPages; ++page) memory.write(page, 1);
  std::atomic<bool> stop{false};
  std::thread traffic([&] {
    std::mt19937_64 own(seed + 1);
    for (std::uint64_t version = 1; !stop.load(); ++version) busy.write_some(own, version);
  });
  std::string wrong;
  for (int i = 0; i < 6 && wrong.empty(); ++i) {
    memory.write_some(random, 10 + i);
    board.begun.fetch_add(1);
    pid_t child = fork_with(pager);
    if (child == 0) {
      alarm(kHangSeconds);
      std::string seen = memory.verify("child");
      memory.write_some(random, 99);
      board.report(seen.empty() ? memory.verify("child that wrote") : seen);
      _exit(0);
    }
    memory.write_some(random, 20 + i);
    wrong = memory.verify("parent");
    note(wrong, how_it_ended(child));
  }
  stop = true;
  traffic.join();
  if (wrong.empty()) wrong = await(board);
  if (wrong.empty()) wrong = busy.verify("the other thread's");
  return wrong.empty() ? audit(pager, false) : wrong;
}

// A fork that fails leaves everything as it was.
std::string failed_fork(Pager& pager) {
  Memory memory(pager);
  for (std::uint32_t page = 0; page < kPages; ++page) memory.write(page, 5);
  if (pager.before_fork() != 0) return "fork was refused";
  pager.after_fork_in_parent(false);
  std::string wrong = memory.verify("after a failed fork");
  return wrong.empty() ? audit(pager, true) : wrong;
}

// What the program keeps from its children is not there to be paged, and everything else is.
std::string fork_without_a_part(Pager& pager) {
  Memory memory(pager);
  for (std::uint32_t page = 0; page < kPages; ++page) memory.write(page, 5);
  auto kept = static_cast<std::uintptr_t>(pager.map(kMiB, kPageSize, PROT_READ | PROT_WRITE, MAP_NORESERVE));
  std::memset(reinterpret_cast<void*>(kept), 7, kMiB);
  if (pager.advise(kept, kMiB, MADV_DONTFORK) != 0) return "MADV_DONTFORK failed";
  Board& board = *new_board();
  board.begun.fetch_add(1);
  pid_t child = fork_with(pager);
  if (child == 0) {
    alarm(kHangSeconds);
    board.report(memory.verify("child"));
    _exit(0);
  }
  if (std::string wrong = how_it_ended(child); !wrong.empty()) return wrong;
  if (*reinterpret_cast<char*>(kept + 5000) != 7) return "the parent lost what it kept";
  return board.ended.load() == 1 ? std::string(board.wrong) : "the child did not come to its end";
}

// Mappings of the kernel in the window, reserved ones included.
int mappings_in_window(const Pager& pager) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += pager.contains(std::stoul(line, nullptr, 16)) ? 1 : 0;
  return count;
}

// A copy of the process that the pager does not know of sees no zeros in the place of far pages (I4), whatever
// happened before: children of our own, mappings that come and go.
std::string copy_behind_our_back(Pager& pager) {
  Memory memory(pager);
  for (std::uint32_t page = 0; page < kPages; ++page) memory.write(page, 5);
  std::string wrong;
  auto come_and_go = [&] {
    std::intptr_t mapped[8];
    for (auto& each : mapped) each = pager.map(kMiB, kPageSize, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    for (int i : {1, 0, 4, 7, 3, 2, 6, 5}) pager.unmap(static_cast<std::uintptr_t>(mapped[i]), kMiB);
    pid_t child = fork_with(pager);
    if (child == 0) _exit(0);
    note(wrong, how_it_ended(child));
  };
  come_and_go();
  const int before = mappings_in_window(pager);
  for (int round = 0; round < 20; ++round) come_and_go();
  if (!wrong.empty()) return wrong;
  if (int after = mappings_in_window(pager); after > before)
    return "the kernel's mappings grew from " + std::to_string(before) + " to " + std::to_string(after);
  pid_t child = fork();  // as a raw system call: nobody told the pager
  if (child == 0) _exit(memory.verify("copy").empty() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
    return "a copy saw far memory, with status " + std::to_string(status);
  child = fork();
  if (child == 0) {
    pager.unmap(pager.window_base(), pager.window_bytes());
    _exit(0);
  }
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) return "a copy could reach its parent's memory";
  return memory.verify("the parent");
}

struct Variant {
  const char* name;
  RealPagerOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class PagerForkTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  }
  std::uint64_t seed = far::testing::test_seed();
};

TEST_P(PagerForkTest, EveryGenerationKeepsItsData) {
  run_with_real_pager(GetParam().options, [this](Pager& pager) { return generations(pager, seed); });
}
TEST_P(PagerForkTest, ForksWhilePagesTravel) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  run_with_real_pager(GetParam().options, [this](Pager& pager) { return forks_while_pages_travel(pager, seed); });
}
TEST_P(PagerForkTest, AFailedForkChangesNothing) {
  run_with_real_pager(GetParam().options, [](Pager& pager) { return failed_fork(pager); });
}
TEST_P(PagerForkTest, MemoryKeptFromChildrenDoesNotKeepThemFromStarting) {
  run_with_real_pager(GetParam().options, fork_without_a_part);
}

TEST_P(PagerForkTest, ACopyBehindOurBackSeesNoZeros) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer's memory does not survive a copy that it does not know of";
#endif
  run_with_real_pager(GetParam().options, copy_behind_our_back);
}

INSTANTIATE_TEST_SUITE_P(Variants, PagerForkTest,
                         ::testing::Values(Variant{"MemMove", {"mem:", true}}, Variant{"MemCopy", {"mem:", false}},
                                           Variant{"ZmemMove", {"zmem:", true}},
                                           Variant{"SlowMove", {"sim:latency=50us,inner=mem:", true}},
                                           Variant{"SignalMem", {"mem:", true, true}},
                                           Variant{"SignalSlow", {"sim:latency=50us,inner=mem:", true, true}},
                                           Variant{"Hermit", {.far_url = "mem:", .reclaim = Reclaim::hermit}}),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace hinterland::testing
