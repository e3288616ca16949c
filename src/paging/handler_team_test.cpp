// Two threads that fault at the same time get a handler each, also in a forked child, and every byte stays right.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 4096;  // of each thread: eight times the budget together
constexpr std::size_t kWords = kPageSize / sizeof(std::uint64_t);

std::uint64_t handlers_called() {
  return stat_page()->counters[static_cast<std::size_t>(Counter::handlers_called)].load(std::memory_order_relaxed);
}

// Writes each page once, and then reads and changes scattered ones until the time is up.
std::string go_through(Pager& pager, std::uint64_t seed, std::uint64_t until_ns) {
  volatile auto cpu = static_cast<std::uint32_t>(sched_getcpu());
  pager.thread_started(&cpu);
  std::intptr_t mapped = pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
  if (mapped < 0) return "cannot map";
  auto* words = reinterpret_cast<volatile std::uint64_t*>(mapped);
  std::vector<std::uint64_t> shadow(kPages);
  std::mt19937_64 random(seed);
  std::string wrong;
  while (wrong.empty() && now_ns() < until_ns) {
    std::size_t page = random() % kPages;
    if (words[page * kWords + page % kWords] != shadow[page]) wrong = "page " + std::to_string(page) + " is wrong";
    if (page % 4 == 0) words[page * kWords + page % kWords] = ++shadow[page];
  }
  pager.unmap(static_cast<std::uintptr_t>(mapped), bytes_of_pages(kPages));
  pager.thread_ended();
  return wrong;
}

// On a busy machine the two may take turns for long, and fault at the same time only now and then: several rounds.
std::string two_threads(Pager& pager) {
  constexpr int kRounds = 120;
  std::uint64_t before = handlers_called();
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t until = now_ns() + 500'000'000;
    std::string first, second;
    std::thread other([&] { second = go_through(pager, 2, until); });
    first = go_through(pager, 1, until);
    other.join();
    if (!first.empty() || !second.empty()) return first + second;
    if (round > 0 && handlers_called() > before) return "";
  }
  return "one handler served both";
}

[[maybe_unused]] std::string two_threads_and_a_child(Pager& pager) {
  if (std::string wrong = two_threads(pager); !wrong.empty()) return wrong;
  if (int error = pager.before_fork(); error != 0) return "cannot fork";
  pid_t child = fork();
  if (child == 0) {
    pager.after_fork_in_child();
    std::string wrong = two_threads(pager);
    if (!wrong.empty()) static_cast<void>(!write(STDERR_FILENO, wrong.data(), wrong.size()));
    _exit(wrong.empty() ? 0 : 1);
  }
  pager.after_fork_in_parent(child > 0);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return "the child found something wrong, or no second handler";
  std::string again = two_threads(pager);
  return again.empty() ? audit(pager, false) : again;
}

TEST(HandlerTeamTest, ASecondThreadThatFaultsGetsAHandlerOfItsOwn) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handlers may not make way here (CAP_SYS_NICE)";
  if (!real_kernel().features().look_for_faults) GTEST_SKIP() << "this kernel has no RWF_NOWAIT for userfaultfd";
  if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
#ifdef __SANITIZE_THREAD__
  run_with_real_pager({}, two_threads);  // it does not support threads started in a forked child
#else
  run_with_real_pager({}, two_threads_and_a_child);
#endif
}

// Where pages are not copied from the device's memory, a spare handler takes them in before it looks for another
// fault.
TEST(HandlerTeamTest, ASpareHandlerServesOverCompressedMemory) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handlers may not make way here (CAP_SYS_NICE)";
  if (!real_kernel().features().look_for_faults) GTEST_SKIP() << "this kernel has no RWF_NOWAIT for userfaultfd";
  if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
  RealPagerOptions options;
  options.far_url = "zmem:";
  run_with_real_pager(options, two_threads);
}

}  // namespace
}  // namespace hinterland::testing
