#include "preload/crash.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/crash_note.hpp"
#include "base/options.hpp"
#include "base/stats.hpp"
#include "preload/ending.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

#ifdef HINTERLAND_COVERAGE
extern "C" void __gcov_dump();
#endif

namespace hinterland::crash {
namespace {

// Those whose default action is to dump core (signal(7)), but for SIGTRAP, which belongs to debuggers.
constexpr std::array kSignals = {SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ};

bool g_on = false;                 // changes once, in the constructor
std::atomic<bool> g_dying{false};  // one core file a process
std::array<char, 4096> g_writer;   // path of the program that writes
std::array<char, 4096> g_pattern;  // of the file
std::array<char, 64> g_note_text;  // the helper's environment
CrashNote g_note;
alignas(16) std::array<std::byte, 16 * 1024> g_helper_stack;

constinit Next<int(int, const struct sigaction*, struct sigaction*)> g_next("sigaction");

// What the program has asked for where our handler is in the place of SIG_DFL.
struct Asked {
  struct sigaction action;
};
std::array<Asked, 65> g_asked;
std::atomic<bool> g_asked_busy{false};

void lock_asked() {
  while (g_asked_busy.exchange(true, std::memory_order_acquire)) raw::call(SYS_sched_yield);
}
void unlock_asked() { g_asked_busy.store(false, std::memory_order_release); }

// Signals are blocked while it is held: a handler may call sigaction, too.
class AskedLock {
 public:
  AskedLock() { lock_asked(); }
  ~AskedLock() { unlock_asked(); }
  AskedLock(const AskedLock&) = delete;
  AskedLock& operator=(const AskedLock&) = delete;

 private:
  SignalsBlocked blocked_{SignalsBlocked::all()};  // first in, last out
};

bool is_watched(int number) {
  for (int watched : kSignals)
    if (number == watched) return true;
  return false;
}

// In the helper: our memory, descriptors of its own, and nothing of ours left once it has become the writer.
int become_writer(void*) {
  std::uint64_t none = 0;
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&none), 0, sizeof none);
  char name[] = "hinterland", command[] = "core", output[] = "--output";
  char* arguments[] = {name, command, output, g_pattern.data(), nullptr};
  char* environment[] = {g_note_text.data(), nullptr};
  raw::call(SYS_execve, reinterpret_cast<long>(g_writer.data()), reinterpret_cast<long>(arguments),
            reinterpret_cast<long>(environment));
  raw::call(SYS_exit, 127);
  return 127;
}

void write_core(siginfo_t* info, void* context) {
  g_note = {reinterpret_cast<std::uintptr_t>(info), reinterpret_cast<std::uintptr_t>(context),
            reinterpret_cast<std::uintptr_t>(stat_page()), static_cast<std::int32_t>(raw::call(SYS_getpid)),
            static_cast<std::int32_t>(raw::call(SYS_gettid))};
  std::snprintf(g_note_text.data(), g_note_text.size(), "%s=%lx", kCrashNoteVariable,
                reinterpret_cast<unsigned long>(&g_note));
  raw::call(SYS_prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // where Yama asks for it
  // No signal at its end, so that the program's own wait() does not meet it.
  int helper = clone(become_writer, g_helper_stack.data() + g_helper_stack.size(), CLONE_VM | CLONE_VFORK, nullptr);
  if (helper < 0) return;
  int status = 0;
  while (raw::call(SYS_wait4, helper, reinterpret_cast<long>(&status), __WALL) == -EINTR) continue;
}

// Ends the program as the signal would have: with the default action, as soon as this handler returns.
void let_it_end(int number, siginfo_t* info) {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = SIG_DFL;
  g_next.get()(number, &action, nullptr);
  long process = raw::call(SYS_getpid), thread = raw::call(SYS_gettid);
  if (raw::call(SYS_rt_tgsigqueueinfo, process, thread, number, reinterpret_cast<long>(info)) != 0)
    raw::call(SYS_tgkill, process, thread, number);
}

void on_fatal_signal(int number, siginfo_t* info, void* context) {
  int saved_errno = errno;
  // Another thread dies at the same time, or we did here: the first one's core file is enough.
  if (!g_dying.exchange(true)) {
    write_core(info, context);
    if (ending::is_own_process()) pager().leave_device();
  }
  let_it_end(number, info);
#ifdef HINTERLAND_COVERAGE
  __gcov_dump();  // a process that a signal ends would leave no trace in the figures
#endif
  errno = saved_errno;
}

// On the alternate stack where the program has one: else a stack that overflowed cannot be helped.
int install(int number) {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  return g_next.get()(number, &action, nullptr);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fatal_signal;
}

}  // namespace

void start() {
  const char* pattern = std::getenv(variable_name(option(OptionId::core)).c_str());
  const char* writer = std::getenv(kCoreWriterVariable);
  if (pattern == nullptr || pattern[0] == '\0' || writer == nullptr) return;
  if (std::strlen(pattern) >= g_pattern.size() || std::strlen(writer) >= g_writer.size()) return;
  std::strcpy(g_pattern.data(), pattern);
  std::strcpy(g_writer.data(), writer);
  for (int number : kSignals) {
    struct sigaction inherited;
    if (g_next.get()(number, nullptr, &inherited) != 0 || inherited.sa_handler != SIG_DFL) continue;
    g_asked[static_cast<std::size_t>(number)].action = inherited;
    install(number);
  }
  g_on = true;
}

void before_fork() { lock_asked(); }
void after_fork() { unlock_asked(); }

bool watches(int number) { return g_on && is_watched(number); }
bool is_our_handler(void (*handler)(int)) {
  return reinterpret_cast<std::uintptr_t>(handler) == reinterpret_cast<std::uintptr_t>(on_fatal_signal);
}

int change_action(int number, const struct sigaction* action, struct sigaction* old) {
  if (!watches(number)) return g_next.get()(number, action, old);
  struct sigaction wanted, before;
  if (action != nullptr) wanted = *action;  // outside the lock: it may be far, or not there
  {
    AskedLock lock;
    Asked& asked = g_asked[static_cast<std::size_t>(number)];
    if (int error = g_next.get()(number, nullptr, &before); error != 0) return error;
    if (is_ours(before)) before = asked.action;
    if (action != nullptr) {
      // After the core is written the default is the real one.
      bool in_place_of_default = wanted.sa_handler == SIG_DFL && !g_dying.load();
      if (in_place_of_default) asked.action = wanted;
      if (int error = in_place_of_default ? install(number) : g_next.get()(number, &wanted, nullptr); error != 0)
        return error;
    }
  }
  if (old != nullptr) *old = before;
  return 0;
}

}  // namespace hinterland::crash
