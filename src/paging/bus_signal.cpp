#include "paging/bus_signal.hpp"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "base/own_stack.hpp"
#include "base/raw_call.hpp"
#include "base/signal_handlers.hpp"
#include "base/signal_mask.hpp"
#include "paging/pager.hpp"

namespace hinterland::bus_signal {
namespace {

thread_local char* t_stack_top = nullptr;
thread_local volatile sig_atomic_t t_stack_used = 0;
thread_local bool t_blocked = false;
thread_local bool t_pending = false;            // SIGBUS was sent while the program believes that it blocks it
thread_local std::uintptr_t t_instruction = 0;  // that faulted, while its fault is served
thread_local unsigned t_foreign_in_row = 0;     // faults where no memory of ours is mapped
thread_local bool t_cancelled_at_once = false;
thread_local const void* t_foreign = nullptr;  // where the last of them was

// What is mapped may change between a touch and our look, but not that often: then it is a file that ends before its
// mapping does, for which there is SIGBUS without us, too.
constexpr unsigned kForeignMax = 4;

constexpr std::uint64_t bit_of(int number) { return std::uint64_t{1} << (number - 1); }
constexpr std::uint64_t kBus = bit_of(SIGBUS);

// As the kernel has it; libc's sigaction is interposed in the library that this is part of.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  std::uint64_t flags;
  void (*restorer)();
  std::uint64_t mask;
};
constexpr std::uint64_t kRestorer = 0x04000000;  // SA_RESTORER

std::atomic<bool> g_installed{false};
std::atomic<Parker> g_parker{nullptr};
// The program's. The lock is held for a few instructions that touch no far memory, with signals blocked.
std::atomic<bool> g_action_busy{false};
KernelAction g_action{};

// Not by libc's function, which the preloaded library replaces by one that changes the program's action. 0 or -errno.
long system_action(const KernelAction* action, KernelAction* old) {
  return raw::call(SYS_rt_sigaction, SIGBUS, raw::word_of(action), raw::word_of(old), sizeof action->mask);
}

void lock_action() {
  while (g_action_busy.exchange(true, std::memory_order_acquire)) syscall(SYS_sched_yield);
}
void unlock_action() { g_action_busy.store(false, std::memory_order_release); }

class ActionLock {
 public:
  ActionLock() : before_(signal_mask::block(signal_handlers::kAllButFaults)) { lock_action(); }
  ~ActionLock() {
    unlock_action();
    signal_mask::set(before_);
  }
  ActionLock(const ActionLock&) = delete;
  ActionLock& operator=(const ActionLock&) = delete;

 private:
  std::uint64_t before_;
};

// The bytes that unwinders and debuggers know a signal frame by.
__attribute__((naked)) void restorer() { __asm__("mov $15, %rax\n\tsyscall"); }

// On the stack for serving; in a handler that interrupts us on the way there, on the one that it has.
void on_serving_stack(void (*body)(void*), void* argument) {
  if (t_stack_top == nullptr || t_stack_used != 0) return body(argument);
  t_stack_used = 1;
  call_on_stack(t_stack_top, body, argument);
  t_stack_used = 0;
}

constexpr std::size_t kArgumentMax = 64;

struct Step {
  void (*body)(void*);
  void* argument;
  std::size_t bytes;
};
// Not on the caller's stack, which may be small; no handler of a signal runs here meanwhile.
thread_local constinit Step t_step{nullptr, nullptr, 0};

// Nothing here is far, so no SIGBUS is ours: one that somebody sends waits, because the program's handler would.
void without_bus(void*) {
  const Step step = t_step;
  alignas(16) std::array<std::byte, kArgumentMax> argument;  // the caller's is maybe far
  std::memcpy(argument.data(), step.argument, step.bytes);
  const std::uint64_t before = signal_mask::block(kBus);
  step.body(argument.data());
  signal_mask::set(before);
  std::memcpy(step.argument, argument.data(), step.bytes);
}

struct Fault {
  std::uintptr_t address;
  bool write, write_protect;
  FaultOutcome outcome;
};

void serve(void* argument) {
  InsideRuntime inside;
  auto* fault = static_cast<Fault*>(argument);
  fault->outcome = Pager::current()->serve_fault(fault->address, fault->write, fault->write_protect);
}

// True: the thread goes on with something else, and touches the page again later. Not in the runtime's own accesses,
// and not where the page is at hand: that is done before another fiber would run.
bool is_parked(const Pager& pager, std::uintptr_t address, bool write, ucontext_t* context) {
  Parker parker = g_parker.load(std::memory_order_acquire);  // pairs with set_parker()
  return parker != nullptr && t_inside_runtime == 0 && pager.is_far_away(address) &&
         parker(address, write ? 1 : 0, context) != 0;
}

// True: the program may touch the address again.
bool is_served(const siginfo_t* info, ucontext_t* context) {
  Pager* pager = Pager::current();
  auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (info->si_code != BUS_ADRERR || pager == nullptr || !pager->contains(address)) return false;
  // A copy of the process that we did not make has no window; what it mapped there since is its own. The descriptor
  // is its parent's: a page brought in with it would come to lie there, without its word knowing.
  if (pager->is_copy()) return false;
  constexpr std::uint64_t kPresent = 1, kWrite = 2;  // of the processor's error code
  auto error = static_cast<std::uint64_t>(context->uc_mcontext.gregs[REG_ERR]);
  Fault fault{address, (error & kWrite) != 0, (error & kPresent) != 0, FaultOutcome::served};
  if (!fault.write_protect && is_parked(*pager, address, fault.write, context)) return true;
  t_instruction = static_cast<std::uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
  on_serving_stack(serve, &fault);  // SIGBUS is blocked: this is its handler
  t_instruction = 0;
  bool again = fault.outcome == FaultOutcome::foreign && t_foreign == info->si_addr;
  t_foreign_in_row = again ? t_foreign_in_row + 1 : 0;
  t_foreign = fault.outcome == FaultOutcome::foreign ? info->si_addr : nullptr;
  return fault.outcome != FaultOutcome::lost && t_foreign_in_row < kForeignMax;
}

KernelAction take_action() {
  ActionLock lock;
  KernelAction action = g_action;
  if ((action.flags & static_cast<std::uint64_t>(SA_RESETHAND)) != 0) g_action.handler = nullptr;
  return action;
}

void send_again(const siginfo_t* info) {
  siginfo_t copy = *info;
  long process = syscall(SYS_getpid), thread = syscall(SYS_gettid);
  // Of signals that the kernel itself sent only the number can be repeated.
  if (syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGBUS, &copy) != 0)
    syscall(SYS_tgkill, process, thread, SIGBUS);
}

// As the kernel: the program ends, at the same instruction where the access was its own.
void end_by_default(const siginfo_t* info) {
  KernelAction by_default{};
  system_action(&by_default, nullptr);
  if (info->si_code <= 0) send_again(info);
}

// On the stack that we are on. Where the thread has an alternate one that is this, also if the action does not ask
// for it: our own frame lies there, and the next fault's would be written over it if the stack pointer were
// elsewhere.
void call_program(const KernelAction& action, siginfo_t* info, ucontext_t* context) {
  std::uint64_t mask;
  std::memcpy(&mask, &context->uc_sigmask, sizeof mask);
  mask = (mask | action.mask) & ~kBus;
  signal_mask::set(mask);
  action.handler(SIGBUS, info, context);
}

void pass_on(siginfo_t* info, ucontext_t* context) {
  const bool sent = info->si_code <= 0;
  if (t_blocked) {
    if (!sent) return end_by_default(info);  // the kernel does not let a thread block its own faults
    t_pending = true;
    return;
  }
  KernelAction action = take_action();
  const auto handler = reinterpret_cast<std::uintptr_t>(action.handler);
  if (handler == reinterpret_cast<std::uintptr_t>(SIG_IGN) && sent) return;
  if (handler == reinterpret_cast<std::uintptr_t>(SIG_DFL) || handler == reinterpret_cast<std::uintptr_t>(SIG_IGN))
    return end_by_default(info);
  call_program(action, info, context);
}

void on_bus(int, siginfo_t* info, void* context) {
  int saved_errno = errno;
  auto* interrupted = static_cast<ucontext_t*>(context);
  const bool waited = t_cancellation_waits;
  t_cancellation_waits = t_cancelled_at_once;
  bool served = is_served(info, interrupted);
  t_cancellation_waits = waited;
  errno = saved_errno;
  if (!served) pass_on(info, interrupted);
}

}  // namespace

// All signals but faults wait, so that no handler of the program runs while this thread has a page in its hands;
// SIGBUS until we call the program's handler, which may touch far memory. On the alternate stack, where the thread
// has one: its own may be far.
Status install() {
  if (g_installed.load()) return {};
  auto* end = raw::g_handler_end != 0 ? reinterpret_cast<void (*)()>(raw::g_handler_end) : restorer;
  KernelAction ours{on_bus, static_cast<std::uint64_t>(SA_SIGINFO | SA_ONSTACK) | kRestorer, end,
                    ~signal_handlers::kFaults};
  KernelAction before{};
  if (long result = system_action(&ours, &before); result != 0)
    return std::unexpected(Error::make(static_cast<int>(-result), "no handler for SIGBUS can be installed")
                               .remedy("use --fault message"));
  g_action = before;
  // It may be blocked: inherited.
  raw::call(SYS_rt_sigprocmask, SIG_UNBLOCK, raw::word_of(&kBus), 0, sizeof kBus);
  own_stack::expect_fault_signals();
  g_installed.store(true);
  return {};
}

std::uintptr_t faulting_instruction() { return t_instruction; }

bool installed() { return g_installed.load(std::memory_order_relaxed); }

int change_action(const struct sigaction* action, struct sigaction* old) {
  KernelAction wanted{}, before;
  if (action != nullptr) {
    wanted.handler = action->sa_sigaction;
    wanted.flags = static_cast<std::uint32_t>(action->sa_flags);
    std::memcpy(&wanted.mask, &action->sa_mask, sizeof wanted.mask);
  }
  {
    ActionLock lock;
    before = g_action;
    if (action != nullptr) g_action = wanted;
  }
  if (old != nullptr) {
    std::memset(old, 0, sizeof *old);
    old->sa_sigaction = before.handler;
    old->sa_flags = static_cast<int>(before.flags & ~kRestorer);
    std::memcpy(&old->sa_mask, &before.mask, sizeof before.mask);
  }
  return 0;
}

void before_fork() { lock_action(); }
void after_fork() { unlock_action(); }

bool is_blocked() { return t_blocked; }

bool block(bool blocked) {
  bool before = t_blocked;
  t_blocked = blocked;
  if (!blocked && t_pending) {
    t_pending = false;
    syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGBUS);
  }
  return before;
}

void on_local_stack(void (*body)(void*), void* argument, std::size_t bytes) {
  HL_CHECK(bytes <= kArgumentMax);
  t_step = {body, argument, bytes};
  on_serving_stack(without_bus, nullptr);
}

void cancel_at_once(bool at_once) { t_cancelled_at_once = at_once; }

void set_parker(Parker parker) { g_parker.store(parker, std::memory_order_release); }

void use_stack(void* base, std::size_t bytes) {
  t_stack_top = base == nullptr
                    ? nullptr
                    : reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(base) + bytes) & ~std::uintptr_t{15});
}

}  // namespace hinterland::bus_signal
