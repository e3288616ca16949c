#include "paging/testing/real_pager.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

namespace hinterland::testing {
namespace {

constexpr std::size_t kMessageMax = 4096;

// What crashed, before the process dies of it.
void say_where(int signal, siginfo_t* info, void* context) {
  std::array<char, 300> text;
  std::array<char, 16> thread{};
  const auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  prctl(PR_GET_NAME, thread.data());
  auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  unsigned long long word = 0;
  Pager* pager = Pager::current();
  if (pager != nullptr && pager->contains(address)) {
    Core& core = PagerParts::of(*pager).core;
    word = core.pages[core.window.index_of(address)].load().bits();
  }
  int length = std::snprintf(
      text.data(), text.size(), "signal %d (code %d) in %s at %#zx, page word %#llx; rdi %#llx rsi %#llx\n", signal,
      info->si_code, thread.data(), static_cast<std::size_t>(address), word, registers[REG_RDI], registers[REG_RSI]);
  static_cast<void>(!write(STDERR_FILENO, text.data(), static_cast<std::size_t>(length)));
  std::array<void*, 32> frames;
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

std::string run_body(const RealPagerOptions& options, const std::function<std::string(Pager&)>& body) {
  struct sigaction action{};
  action.sa_sigaction = say_where;
  action.sa_flags = SA_SIGINFO;
  for (int signal : {SIGSEGV, SIGBUS}) sigaction(signal, &action, nullptr);
  const FaultDelivery faults = options.faults_by_signal ? FaultDelivery::signals : FaultDelivery::messages;
  real_kernel().deliver_faults_by(faults);
  if (Status status = real_kernel().open(); !status) return status.error().what();
  auto device = far::open_device(options.far_url, {});
  if (!device) return device.error().what();
  PagerOptions pager_options;
  pager_options.budget_bytes = options.budget_bytes;
  pager_options.window_bytes = 16 * kGiB;
  pager_options.manage_at_once = true;
  pager_options.policy = &kSecondChancePolicy;
  pager_options.faults = faults;
  pager_options.take_by_move = options.take_by_move;
  pager_options.parts = options.parts;
  pager_options.reclaim = options.reclaim;
  pager_options.addresses = options.addresses;
  auto pager = Pager::start(pager_options, real_kernel(), std::move(*device));
  if (!pager) return pager.error().what();
  return body(**pager);
}

}  // namespace

std::string why_no_real_pager() {
  static const std::string reason = [] {
    Status status = real_kernel().open();
    return status ? std::string() : std::string(status.error().what());
  }();
  return reason;
}

void run_with_real_pager(const RealPagerOptions& options, const std::function<std::string(Pager&)>& body) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (options.faults_by_signal) GTEST_SKIP() << "sanitizers have handlers of their own, and know no stack for faults";
#endif
  auto* message =
      static_cast<char*>(mmap(nullptr, kMessageMax, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(message, MAP_FAILED);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kHangSeconds);
    std::string wrong = run_body(options, body);
    std::snprintf(message, kMessageMax, "%s", wrong.c_str());
    _exit(wrong.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status)
                                 << (WTERMSIG(status) == SIGALRM ? ": it hung" : "");
  EXPECT_STREQ(message, "");
  // A sanitizer that found something ends the child with a status of its own.
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), *message == '\0' ? 0 : 1);
  }
  munmap(message, kMessageMax);
}

bool has_room_in_hand(Pager& pager) { return PagerParts::of(pager).core.budget.should_stop(); }

std::string audit(Pager& pager, bool alone) {
  Pager::Impl& parts = PagerParts::of(pager);
  Core& core = parts.core;
  parts.map_mutex.lock();
  parts.pause_movers();
  std::int64_t resident = 0, frames = 0, far = 0, absent = 0, clean = 0;
  parts.for_each_page([&](PageIndex page, PageCell& cell) {
    PageWord word = cell.load();
    if (word.state() == PageState::untouched) return;
    std::uint64_t present = 0;
    core.kernel.present(core.address_of(page), 1, {&present, 1});
    resident += word.state() == PageState::resident;
    absent += word.state() == PageState::resident && present == 0;
    clean += word.state() == PageState::resident && word.has_far();
    far += word.has_far() || word.state() == PageState::parked;
  });
  for (std::uint32_t i = 0; i < core.frames.capacity(); ++i)
    frames += core.frames[i].state.load() != FrameState::empty;
  std::int64_t local = core.budget.local();
  auto listed = static_cast<std::int64_t>(core.policy.size());
  auto used = static_cast<std::int64_t>(core.devices.pages_in_use());
  parts.resume_movers();
  parts.map_mutex.unlock();
  bool fine = local == resident + frames && (alone ? far == used : far <= used) && absent == 0 && listed >= resident;
  if (fine) return "";
  std::array<char, 256> text;
  std::snprintf(
      text.data(), text.size(),
      "budget counts %ld: %ld resident (%ld absent, %ld clean) + %ld in frames; %ld listed; far %ld, used %ld", local,
      resident, absent, clean, frames, listed, far, used);
  return text.data();
}

bool has_thread(const std::string& wanted) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == wanted) return true;
  }
  return false;
}

void wait_for_thread(const std::string& wanted) {
  while (!has_thread(wanted)) usleep(1'000);
}

}  // namespace hinterland::testing
