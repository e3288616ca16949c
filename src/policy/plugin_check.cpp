// A plug-in is tried in a child process, where it can harm nobody.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <span>

#include "policy/plugin.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 4096;
constexpr int kSteps = 100'000;
// Of computing; and altogether, for one that waits. On a busy machine the second passes without the first.
constexpr unsigned kComputingSecondsMax = 10, kSecondsMax = 120;

void* reserve(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}

hl_policy_env environment_of(const NamedPolicy& policy) {
  hl_policy_env environment{};
  environment.abi_version = HL_POLICY_ABI_VERSION;
  environment.window_pages = kPages;
  environment.reserve = reserve;
  environment.was_hinted = [](void*, hl_page page) { return page % 3 == 0 ? 1 : 0; };
  environment.settings = policy.settings.c_str();
  environment.capacity = [](void*) { return std::uint64_t{kPages / 4}; };
  environment.place_of = [](void*, hl_page page) { return std::uint64_t{page}; };
  environment.page_at = [](void*, std::uint64_t place) {
    return place < kPages ? static_cast<hl_page>(place) : HL_NO_PAGE;
  };
  return environment;
}

// Calls in any order that the interface permits, beside a set of the pages that the policy must hold.
class Trial {
 public:
  Trial(const hl_policy_ops& ops, void* state) : ops_(ops), state_(state) {}

  // What is wrong; nullptr: nothing was found.
  const char* run() {
    for (int step = 0; step < kSteps; ++step) {
      if (const char* problem = one_call(); problem != nullptr) return problem;
      if (ops_.size(state_) != held_.size()) return "says that it holds more or fewer pages than it was told of";
    }
    while (!held_.empty())
      if (const char* problem = choose(64); problem != nullptr) return problem;
    return nullptr;
  }

 private:
  const char* one_call() {
    auto first = static_cast<hl_page>(random_() % (kPages - 8));
    auto count = 1 + static_cast<std::uint32_t>(random_() % 8);
    switch (random_() % 8) {
      case 6:
        return speak_aside(first, count);
      case 7:
        return bring_one(first);
      case 0:
        ops_.departed(state_, first, count);
        for (hl_page page = first; page < first + count; ++page) held_.erase(page);
        return nullptr;
      case 1:
        return choose(count);
      case 2:
        return held_.contains(first) ? use(first) : miss(first);
      default:
        ops_.arrived(state_, first, count, static_cast<hl_arrival>(random_() % 6),
                     static_cast<std::uint8_t>(random_() % 16));
        for (hl_page page = first; page < first + count; ++page) held_.insert(page);
        return nullptr;
    }
  }
  const char* choose(std::uint32_t most) {
    std::array<hl_page, 64> victims;
    std::uint32_t chosen = ops_.choose_victims(state_, victims.data(), most);
    if (chosen > most) return "returns more victims than it is asked for";
    if (chosen == 0 && !held_.empty()) return "returns no victim though it holds pages";
    for (hl_page page : std::span(victims).first(chosen))
      if (held_.erase(page) == 0)
        return "returns a page as a victim that it was not told of, or that it has returned before";
    if (ops_.worth_a_frame != nullptr)
      for (hl_page page : std::span(victims).first(chosen)) ops_.worth_a_frame(state_, page);
    return nullptr;
  }
  // Time, mappings, and its own figures.
  const char* speak_aside(hl_page first, std::uint32_t count) {
    hl_mapping mapping{first, count, HL_MAPPING_MMAP, ""};
    if (ops_.mapped != nullptr) ops_.mapped(state_, &mapping);
    if (ops_.unmapped != nullptr) ops_.unmapped(state_, first / 2, count);
    if (ops_.tick != nullptr) ops_.tick(state_, now_ns_ += 100'000'000);
    hl_policy_report report{};
    if (ops_.report != nullptr) ops_.report(state_, &report);
    return report.count > HL_POLICY_FIGURES_MAX ? "reports more figures than there is room for" : nullptr;
  }
  // One that comes in is first asked for, where the policy wants to be.
  const char* bring_one(hl_page page) {
    if (held_.contains(page)) return use(page);
    if (ops_.admits != nullptr && ops_.admits(state_, page, HL_ARRIVAL_FAULT) == 0) return nullptr;
    ops_.arrived(state_, page, 1, HL_ARRIVAL_FAULT, 0);
    held_.insert(page);
    return nullptr;
  }
  const char* use(hl_page page) {
    if (ops_.accessed != nullptr) ops_.accessed(state_, page, HL_ACCESS_WRITE);
    return nullptr;
  }
  const char* miss(hl_page page) {
    bool by_hint = random_() % 4 == 0;
    auto* call = by_hint ? ops_.hinted : ops_.missed;
    if (call == nullptr) return nullptr;
    std::array<hl_page, 64> next;
    auto most = static_cast<std::uint32_t>(random_() % next.size());
    std::uint32_t count = call(state_, page, next.data(), most);
    if (!by_hint && count == HL_OWN_READ_AHEAD) return nullptr;
    if (count > most) return "returns more pages to read next than it is asked for";
    for (hl_page wanted : std::span(next).first(count))
      if (wanted >= kPages) return "returns a page to read next that does not exist";
    return nullptr;
  }

  const hl_policy_ops& ops_;
  void* state_;
  std::set<hl_page> held_;
  std::mt19937_64 random_{7};
  std::uint64_t now_ns_ = 0;
};

[[noreturn]] void try_in_child(const NamedPolicy& policy, int answer) {
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGPROF}) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const itimerval computing{{0, 0}, {kComputingSecondsMax, 0}};
  setitimer(ITIMER_PROF, &computing, nullptr);
  alarm(kSecondsMax);
  hl_policy_env environment = environment_of(policy);
  void* state = policy.ops->create(&environment);
  const char* problem =
      state != nullptr ? Trial(*policy.ops, state).run() : "cannot be created: its create() says so";
  if (problem != nullptr) (void)!write(answer, problem, std::strlen(problem));
  _exit(0);
}

}  // namespace

Status check_plugin(const NamedPolicy& policy) {
  int answer[2];
  if (pipe(answer) != 0)
    return std::unexpected(Error::make(errno, "no pipe for the trial of policy %s", policy.ops->name));
  pid_t child = fork();
  if (child == 0) try_in_child(policy, answer[1]);
  close(answer[1]);
  std::array<char, 200> problem{};
  ssize_t length = child > 0 ? read(answer[0], problem.data(), problem.size() - 1) : 0;
  close(answer[0]);
  if (child < 0)
    return std::unexpected(Error::make(errno, "no process for the trial of policy %s", policy.ops->name));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (length <= 0 && WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGPROF)
      std::snprintf(problem.data(), problem.size(), "does not return within %u s of computing", kComputingSecondsMax);
    else if (WTERMSIG(status) == SIGALRM)
      std::snprintf(problem.data(), problem.size(), "does not return within %u s", kSecondsMax);
    else
      std::snprintf(problem.data(), problem.size(), "crashes: %s", strsignal(WTERMSIG(status)));
  } else if (length <= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
    std::snprintf(problem.data(), problem.size(), "ends the process");
  }
  if (problem[0] == '\0') return {};
  return std::unexpected(
      Error::make(0, "policy %s %s, when it is called as the runtime calls it", policy.ops->name, problem.data())
          .remedy("docs/policies.md says what each call may be and how to debug one"));
}

}  // namespace hinterland
