#include "preload/trap_signal.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/raw_call.hpp"
#include "preload/crash.hpp"
#include "preload/held_for_call.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::trap_signal {

std::atomic<bool> g_ours{false};

namespace {

constexpr int kSignals = 64;
constexpr std::uint64_t kBus = std::uint64_t{1} << (SIGBUS - 1);

// The program's. The lock is held for a few instructions that touch no far memory.
std::atomic<bool> g_busy{false};
KernelAction g_action{};
std::array<std::atomic<std::uint64_t>, kSignals + 1> g_hidden;  // of the masks that go with actions

__attribute__((tls_model("initial-exec"))) thread_local bool t_blocked = false;
__attribute__((tls_model("initial-exec"))) thread_local bool t_pending = false;

long system_action(int number, const KernelAction* action, KernelAction* before) {
  return raw::call(SYS_rt_sigaction, number, raw::word_of(action), raw::word_of(before), sizeof action->mask);
}

class ActionLock {
 public:
  ActionLock() {
    while (g_busy.exchange(true, std::memory_order_acquire)) raw::call(SYS_sched_yield);
  }
  ~ActionLock() { g_busy.store(false, std::memory_order_release); }
  ActionLock(const ActionLock&) = delete;
  ActionLock& operator=(const ActionLock&) = delete;

 private:
  SignalsBlocked blocked_{SignalsBlocked::kAllButFaults};  // first in, last out
};

void send_again(const siginfo_t* info) {
  siginfo_t copy = *info;
  long process = raw::call(SYS_getpid), thread = raw::call(SYS_gettid);
  // Of signals that the kernel itself sent only the number can be repeated.
  if (raw::call(SYS_rt_tgsigqueueinfo, process, thread, SIGSYS, raw::word_of(&copy)) != 0)
    raw::call(SYS_tgkill, process, thread, SIGSYS);
}

bool is(const KernelAction& action, void (*special)(int)) {
  return reinterpret_cast<std::uintptr_t>(action.handler) == reinterpret_cast<std::uintptr_t>(special);
}

// To the program that is the default.
bool writes_core(const KernelAction& action) {
  return crash::is_our_handler(reinterpret_cast<void (*)(int)>(reinterpret_cast<std::uintptr_t>(action.handler)));
}

KernelAction take_action() {
  ActionLock lock;
  KernelAction action = g_action;
  if ((action.flags & static_cast<std::uint64_t>(SA_RESETHAND)) != 0) g_action.handler = nullptr;
  return action;
}

}  // namespace

int install(void (*handler)(int, siginfo_t*, void*)) {
  // Calls that wait are made in it, so that no signal is blocked there and it may be interrupted by itself. By
  // signal, the stack that a call is made on may be far: there every thread has another one.
  std::uint64_t flags = static_cast<std::uint64_t>(SA_SIGINFO | SA_NODEFER) | kRestorer;
  if (pager().faults_by_signal()) flags |= SA_ONSTACK;
  KernelAction ours{handler, flags, reinterpret_cast<void (*)()>(raw::g_handler_end), 0};
  KernelAction before{};
  if (long problem = system_action(SIGSYS, &ours, &before); problem != 0) return static_cast<int>(problem);
  g_action = before;
  std::uint64_t mask = 0;  // inherited
  raw::call(SYS_rt_sigprocmask, SIG_UNBLOCK, raw::word_of(&kBit), raw::word_of(&mask), sizeof mask);
  t_blocked = (mask & kBit) != 0;
  g_ours.store(true);
  return 0;
}

KernelAction as_kernels(const struct sigaction& action) {
  KernelAction result{action.sa_sigaction, static_cast<std::uint32_t>(action.sa_flags), nullptr, 0};
  std::memcpy(&result.mask, &action.sa_mask, sizeof result.mask);
  return result;
}

struct sigaction as_libcs(const KernelAction& action) {
  struct sigaction result;
  std::memset(&result, 0, sizeof result);
  result.sa_sigaction = action.handler;
  result.sa_flags = static_cast<int>(action.flags & ~kRestorer);
  std::memcpy(&result.sa_mask, &action.mask, sizeof action.mask);
  return result;
}

void after_fork_in_child() { g_busy.store(false); }

void exchange(const KernelAction* wanted, KernelAction* before) {
  ActionLock lock;
  *before = g_action;
  if (writes_core(*before)) *before = {};
  if (wanted != nullptr) g_action = *wanted;
}

std::uint64_t exchange_hidden(int number, const std::uint64_t* hidden) {
  if (number < 1 || number > kSignals) return 0;
  auto& noted = g_hidden[static_cast<std::size_t>(number)];
  return hidden != nullptr ? noted.exchange(*hidden) : noted.load();
}

std::uint64_t hidden_signals() { return (is_ours() ? kBit : 0) | (bus_signal::installed() ? kBus : 0); }

namespace {

int exchange_bus(const KernelAction* wanted, KernelAction* before) {
  struct sigaction libcs_wanted, libcs_before;
  if (wanted != nullptr) libcs_wanted = as_libcs(*wanted);
  int problem = bus_signal::change_action(wanted != nullptr ? &libcs_wanted : nullptr, &libcs_before);
  *before = as_kernels(libcs_before);
  return problem;
}

}  // namespace

long change_action_by_call(int number, const void* wanted, void* before, std::size_t set_bytes) {
  if (set_bytes != sizeof(std::uint64_t))
    return raw::call(SYS_rt_sigaction, number, raw::word_of(wanted), raw::word_of(before),
                     static_cast<long>(set_bytes));
  HeldForCall held_wanted(wanted, sizeof(KernelAction)), held_before(before, sizeof(KernelAction));
  KernelAction given{}, found{};
  if (wanted != nullptr) std::memcpy(&given, wanted, sizeof given);
  const KernelAction* asked = wanted != nullptr ? &given : nullptr;
  int problem = 0;
  if (is_ours(number))
    exchange(asked, &found);
  else if (number == SIGBUS && bus_signal::installed())
    problem = exchange_bus(asked, &found);
  else
    problem = change_action(number, asked, &found, hidden_signals(),
                            [number](const KernelAction* action, KernelAction* old) {
                              return static_cast<int>(system_action(number, action, old));
                            });
  if (problem == 0 && before != nullptr) std::memcpy(before, &found, sizeof found);
  return problem;
}

std::uint64_t hide(std::uint64_t hidden, int how, std::uint64_t* set) {
  std::uint64_t blocked = (is_blocked() ? kBit : 0) | (bus_signal::is_blocked() ? kBus : 0);
  blocked &= hidden;
  if (set == nullptr) return blocked;
  std::uint64_t named = *set & hidden;
  *set &= ~hidden;
  std::uint64_t now = how == SIG_BLOCK ? blocked | named : how == SIG_UNBLOCK ? blocked & ~named : named;
  if (((now ^ blocked) & kBit) != 0) block((now & kBit) != 0);
  if (((now ^ blocked) & kBus) != 0) bus_signal::block((now & kBus) != 0);
  return blocked;
}

long change_mask_by_call(int how, const void* set, void* before, std::size_t set_bytes) {
  if (set_bytes != sizeof(std::uint64_t) || (set != nullptr && (how < SIG_BLOCK || how > SIG_SETMASK)))
    return -EINVAL;
  HeldForCall held_set(set, set_bytes), held_before(before, set_bytes);
  signal_mask::Word given, found;
  std::uint64_t wanted = 0;
  if (set != nullptr) std::memcpy(&wanted, set, sizeof wanted);
  std::uint64_t believed = hide(hidden_signals(), how, set != nullptr ? &wanted : nullptr);
  given.get() = wanted;
  long result =
      raw::call(SYS_rt_sigprocmask, how, set != nullptr ? given.address() : 0, found.address(), sizeof wanted);
  std::uint64_t was = found.get() | believed;
  if (result == 0 && before != nullptr) std::memcpy(before, &was, sizeof was);
  return result;
}

bool is_blocked() { return t_blocked; }

bool block(bool blocked) {
  bool before = t_blocked;
  t_blocked = blocked;
  if (!blocked && t_pending) {
    t_pending = false;
    raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), SIGSYS);
  }
  return before;
}

void pass_on(siginfo_t* info, ucontext_t* context) {
  const bool sent = info->si_code <= 0;
  if (t_blocked && sent) {
    t_pending = true;
    return;
  }
  KernelAction action = take_action();
  if (sent && is(action, SIG_IGN)) return;
  if (t_blocked || is(action, SIG_DFL) || is(action, SIG_IGN)) {
    KernelAction by_default{};
    system_action(SIGSYS, &by_default, nullptr);
    return send_again(info);
  }
  std::uint64_t mask;
  std::memcpy(&mask, &context->uc_sigmask, sizeof mask);
  mask = (mask | action.mask) & ~kBit;
  signal_mask::set(mask);
  action.handler(SIGSYS, info, context);
}

}  // namespace hinterland::trap_signal
