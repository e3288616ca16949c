// Many threads that fault at the same time: the work of serving them grows with their number, not with its square.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/inside.hpp"
#include "base/stats.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint32_t kThreads = 2000;
constexpr std::uint32_t kPages = 5 * 4096;  // five times the budget: the first kThreads pages are far
// Threads and sanitizers may leave a quarter of it to pages. An eighth of that, the most that a piece has, is 128.
constexpr std::uint64_t kBudgetBytes = 16 * kMiB;
// Pieces have 64 faults and more, but for the last of a crowd, which has 64 and more itself.
constexpr std::uint64_t kFaultsPerWakeMin = 32;

struct Crowd {
  std::uint64_t* words = nullptr;
  std::atomic<std::uint32_t> go{0}, ready{0}, done{0}, wrong{0};
  std::uint64_t& first_word(std::uint32_t page) { return words[page * (kPageSize / sizeof(std::uint64_t))]; }
};

struct Member {
  Crowd* crowd;
  std::uint32_t page;
};

void* touch(void* argument) {
  auto [crowd, page] = *static_cast<Member*>(argument);
  crowd->ready.fetch_add(1);
  crowd->go.wait(0);
  if (std::atomic_ref(crowd->first_word(page)).load() != page + 1) crowd->wrong.fetch_add(1);
  crowd->done.fetch_add(1);
  return nullptr;
}

// Threads that wait for a page, as the kernel says it of its userfaultfds.
std::uint64_t waiting_threads() {
  std::uint64_t waiting = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string word; file >> word;)
      if (std::uint64_t count = 0; word == "total:" && file >> count) waiting += count;
  }
  return waiting;
}

bool start(std::vector<pthread_t>& threads, std::vector<Member>& members) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (std::size_t i = 0; i < threads.size(); ++i)
    if (pthread_create(&threads[i], &small, touch, &members[i]) != 0) return false;
  pthread_attr_destroy(&small);
  return true;
}

// While movers stand still, as for a fork, nobody serves faults: all threads come to wait.
std::string gather(Pager& pager, Crowd& crowd) {
  InsideRuntime inside;
  if (pager.before_fork() != 0) return "the pager does not stand still";
  crowd.go.store(1);
  crowd.go.notify_all();
  while (waiting_threads() + crowd.done < kThreads) sched_yield();
  pager.after_fork_in_parent(false);
  return "";
}

std::string serve_a_crowd(Pager& pager) {
  Crowd crowd;
  crowd.words =
      reinterpret_cast<std::uint64_t*>(pager.map(bytes_of_pages(kPages), kPageSize, PROT_READ | PROT_WRITE));
  for (std::uint32_t page = 0; page < kPages; ++page) crowd.first_word(page) = page + 1;
  std::vector<pthread_t> threads(kThreads);
  std::vector<Member> members;
  // From the highest address down, and in steps: no stream that is read ahead.
  for (std::uint32_t i = 0; i < kThreads; ++i) members.push_back({&crowd, (kThreads - 1 - i) * 7 % kThreads});
  if (!start(threads, members)) return "not so many threads on this machine";
  while (crowd.ready < kThreads) sched_yield();
  if (std::string wrong = gather(pager, crowd); !wrong.empty()) return wrong;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  if (crowd.wrong != 0) return std::to_string(crowd.wrong) + " pages are wrong";
  auto& counters = stat_page()->counters;
  std::uint64_t faults = counters[Counter::faults_crowded], wakes = counters[Counter::crowd_wakes];
  if (faults < kThreads / 2) return "only " + std::to_string(faults) + " faults were served as those of a crowd";
  if (wakes * kFaultsPerWakeMin > faults)
    return std::to_string(wakes) + " wake-ups for " + std::to_string(faults) + " faults";
  return audit(pager, true);
}

void run(const std::string& far_url) {
  if (std::string why = why_no_real_pager(); !why.empty()) GTEST_SKIP() << why;
  run_with_real_pager({.far_url = far_url, .budget_bytes = kBudgetBytes}, serve_a_crowd);
}

TEST(FaultCrowd, IsWokenTogether) { run("mem:"); }
TEST(FaultCrowd, IsWokenTogetherOverADeviceThatAnswersLater) { run("sim:latency=20us,inner=mem:"); }

}  // namespace
}  // namespace hinterland::testing
