// Two threads that fault at the same time get a handler each, also in a forked child, and every byte stays right.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "kernel/scheduling.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kPages = 4096;               // of each thread: eight times the budget together
constexpr std::uint64_t kSurelyNs = 75'000'000'000;  // three times that, and the test has not yet hung
constexpr std::size_t kWords = kPageSize / sizeof(std::uint64_t);

std::uint64_t handlers_called() { return stat_page()->counters[Counter::handlers_called]; }

// Lets two threads go in turns, however the scheduler would have it.
class Turns {
 public:
  void await(unsigned whose) {
    for (unsigned now = turn_.load(); now % 2 != whose && !over_; now = turn_.load()) turn_.wait(now);
  }
  void pass() {
    turn_.fetch_add(1);
    turn_.notify_all();
  }
  void end() {
    over_ = true;
    pass();
  }
  bool over() const { return over_; }

 private:
  std::atomic<unsigned> turn_{0};
  std::atomic<bool> over_{false};
};

class Worker {
 public:
  Worker(Pager& pager, unsigned number) : pager_(pager), number_(number), random_(number + 1), shadow_(kPages) {}

  // Reads and changes scattered pages: in turns until they are over, and then for as long as is said.
  std::string work(Turns& turns, std::uint64_t free_ns) {
    volatile auto cpu = static_cast<std::uint32_t>(sched_getcpu());
    pager_.thread_started(&cpu);
    std::intptr_t mapped = pager_.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE);
    words_ = reinterpret_cast<volatile std::uint64_t*>(mapped);
    if (mapped < 0) wrong_ = "cannot map";
    for (turns.await(number_); wrong_.empty() && !turns.over(); turns.await(number_)) {
      step();
      turns.pass();
    }
    if (!wrong_.empty()) turns.end();
    for (std::uint64_t until = now_ns() + free_ns; wrong_.empty() && now_ns() < until;) step();
    if (mapped >= 0) pager_.unmap(static_cast<std::uintptr_t>(mapped), bytes_of_pages(kPages));
    pager_.thread_ended();
    return wrong_;
  }

 private:
  void step() {
    std::size_t page = random_() % kPages;
    volatile std::uint64_t& word = words_[page * kWords + page % kWords];
    if (word != shadow_[page]) wrong_ = "page " + std::to_string(page) + " is wrong";
    if (page % 4 == 0) word = ++shadow_[page];
  }

  Pager& pager_;
  unsigned number_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> shadow_;
  volatile std::uint64_t* words_ = nullptr;
  std::string wrong_;
};

// They fault in turns until a second handler is called, which is so after a number of faults, and then as they like:
// both handlers are at work. How many faults it takes depends on what earlier calls were worth.
// `ask`: for the handler, so that this depends on nothing.
std::string two_threads(Pager& pager, bool ask) {
  std::atomic<std::uint32_t> second_id{0};
  Turns turns;
  std::string first, second;
  std::uint64_t before = handlers_called(), until = now_ns() + kSurelyNs;
  std::thread one([&] { first = Worker(pager, 0).work(turns, 700'000'000); });
  std::thread other([&] {
    second_id = static_cast<std::uint32_t>(gettid());
    second = Worker(pager, 1).work(turns, 700'000'000);
  });
  for (; !turns.over() && handlers_called() == before && now_ns() < until; usleep(1'000))
    if (ask && second_id != 0) PagerParts::of(pager).handlers.attendance().call(second_id);
  bool called = handlers_called() != before;
  turns.end();
  one.join();
  other.join();
  if (!first.empty() || !second.empty()) return first + second;
  return called ? "" : "one handler served both";
}

[[maybe_unused]] std::string two_threads_and_a_child(Pager& pager) {
  if (std::string wrong = two_threads(pager, false); !wrong.empty()) return wrong;
  if (int error = pager.before_fork(); error != 0) return "cannot fork";
  pid_t child = fork();
  if (child == 0) {
    pager.after_fork_in_child();
    std::string wrong = two_threads(pager, true);
    if (!wrong.empty()) static_cast<void>(!write(STDERR_FILENO, wrong.data(), wrong.size()));
    _exit(wrong.empty() ? 0 : 1);
  }
  pager.after_fork_in_parent(child > 0);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return "the child found something wrong, or no second handler";
  std::string again = two_threads(pager, true);
  return again.empty() ? audit(pager, false) : again;
}

TEST(HandlerTeamTest, ASecondThreadThatFaultsGetsAHandlerOfItsOwn) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (!may_leave_idle_policy()) GTEST_SKIP() << "the handlers may not make way here (CAP_SYS_NICE)";
  if (!real_kernel().features().look_for_faults) GTEST_SKIP() << "this kernel has no RWF_NOWAIT for userfaultfd";
  if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
#ifdef __SANITIZE_THREAD__
  run_with_real_pager({}, [](Pager& pager) {
    return two_threads(pager, false);
  });  // it does not support threads started in a forked child
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
  run_with_real_pager(options, [](Pager& pager) { return two_threads(pager, false); });
}

}  // namespace
}  // namespace hinterland::testing
