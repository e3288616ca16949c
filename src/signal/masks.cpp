// Signal masks, actions and alternate stacks as the program sees them (masks.hpp, stacks.hpp).
#include "signal/masks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "signal/held.hpp"
#include "signal/interposed.hpp"

using namespace hinterland;

namespace {

using Handler = void (*)(int);

// Whether the mask that goes with a signal's handler was to hold SIGBUS.
std::array<std::atomic<bool>, 65> g_blocks_bus;  // relaxed: it changes when the action does, and says no more

// What libc's functions for signals hand to the kernel lies here or below, on a stack that may be far: the kernel
// would not wait for the page, change the mask, and not say what it was. So that part of the stack stays there
// meanwhile.
class StackHeld {
 public:
  StackHeld()
      : low_(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - kBelow),
        held_(is_far(reinterpret_cast<void*>(low_)) || is_far(reinterpret_cast<void*>(low_ + kBytes))) {
    if (held_) hl_self_paging.hold(low_, kBytes, true);
  }
  ~StackHeld() {
    if (held_) hl_self_paging.let_go(low_, kBytes);
  }
  StackHeld(const StackHeld&) = delete;
  StackHeld& operator=(const StackHeld&) = delete;

 private:
  static constexpr std::size_t kBelow = 1024, kBytes = 1536;
  std::uintptr_t low_;
  bool held_;
};

// With both sets here: libc hands them on to the kernel.
template <typename Change>
__attribute__((noinline)) int change_held_mask(int how, const sigset_t* set, sigset_t* old, Change&& change) {
  sigset_t before;
  int result = change(how, MaskForKernel(set).get(), &before);
  if (result != 0) return result;
  bool blocked = hl_self_paging.is_blocked() != 0;
  // The new mask counts from here on, before a signal that waited is delivered.
  bool named = set != nullptr && sigismember(set, SIGBUS) == 1;
  bool wanted = how == SIG_SETMASK ? named : how == SIG_BLOCK ? blocked || named : blocked && !named;
  if (old != nullptr) {
    *old = before;
    if (blocked) sigaddset(old, SIGBUS);
  }
  if (set != nullptr && wanted != blocked) hl_self_paging.block(wanted ? 1 : 0);
  return 0;
}

// The sets are another function's: what holds the stack needs some of it, too, and not at the same time.
template <typename Change>
int change_mask(int how, const sigset_t* set, sigset_t* old, Change&& change) {
  StackHeld held;
  return change_held_mask(how, set, old, change);
}

int change_action(int number, const struct sigaction* action, struct sigaction* old,
                  int (*next)(int, const struct sigaction*, struct sigaction*)) {
  struct sigaction wanted, before;
  if (action != nullptr) wanted = *action;
  if (number == SIGBUS) {
    int result = hl_self_paging.change_action(action != nullptr ? &wanted : nullptr, &before);
    if (result == 0 && old != nullptr) *old = before;
    return result;
  }
  StackHeld held;
  bool blocks = action != nullptr && sigismember(&wanted.sa_mask, SIGBUS) == 1;
  if (blocks) sigdelset(&wanted.sa_mask, SIGBUS);
  int result = next(number, action != nullptr ? &wanted : nullptr, &before);
  if (result != 0 || number < 1 || number > 64) return result;
  auto& remembered = g_blocks_bus[static_cast<std::size_t>(number)];
  bool blocked = action != nullptr ? remembered.exchange(blocks) : remembered.load();
  if (blocked) sigaddset(&before.sa_mask, SIGBUS);
  if (old != nullptr) *old = before;
  return result;
}

// signal() and its kin, for SIGBUS.
Handler set_bus_handler(Handler handler, int flags, bool blocks_itself) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action, old;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (blocks_itself) sigaddset(&action.sa_mask, SIGBUS);
  return hl_self_paging.change_action(&action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
Handler set_bsd(Handler handler) { return set_bus_handler(handler, SA_RESTART, true); }
Handler set_sysv(Handler handler) {
  return set_bus_handler(handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER, false);
}
bool is_ours(int number) { return number == SIGBUS && self_paging(); }

}  // namespace

HL_INTERPOSED(int, sigprocmask, (int how, const sigset_t* set, sigset_t* old)) {
  if (!self_paging()) return NEXT(sigprocmask)(how, set, old);
  return change_mask(how, set, old, [](auto... all) { return NEXT(sigprocmask)(all...); });
}
HL_INTERPOSED(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old)) {
  if (!self_paging()) return NEXT(pthread_sigmask)(how, set, old);
  return change_mask(how, set, old, [](auto... all) { return NEXT(pthread_sigmask)(all...); });
}
HL_INTERPOSED(int, sigsuspend, (const sigset_t* mask)) { return NEXT(sigsuspend)(MaskForKernel(mask).get()); }
HL_INTERPOSED(int, sighold, (int number)) {
  if (!is_ours(number)) return NEXT(sighold)(number);
  hl_self_paging.block(1);
  return 0;
}
HL_INTERPOSED(int, sigrelse, (int number)) {
  if (!is_ours(number)) return NEXT(sigrelse)(number);
  hl_self_paging.block(0);
  return 0;
}
// The old ones, with a mask of 32 signals.
HL_INTERPOSED(int, sigblock, (int mask)) {
  if (!self_paging()) return NEXT(sigblock)(mask);
  bool blocked = hl_self_paging.is_blocked() != 0;
  if ((mask & 1 << (SIGBUS - 1)) != 0) hl_self_paging.block(1);
  return NEXT(sigblock)(mask & ~(1 << (SIGBUS - 1))) | (blocked ? 1 << (SIGBUS - 1) : 0);
}
HL_INTERPOSED(int, sigsetmask, (int mask)) {
  if (!self_paging()) return NEXT(sigsetmask)(mask);
  int old = NEXT(sigsetmask)(mask & ~(1 << (SIGBUS - 1)));
  bool blocked = hl_self_paging.block((mask & 1 << (SIGBUS - 1)) != 0 ? 1 : 0) != 0;
  return old | (blocked ? 1 << (SIGBUS - 1) : 0);
}

HL_INTERPOSED(int, sigaction, (int number, const struct sigaction* action, struct sigaction* old)) {
  if (!self_paging()) return NEXT(sigaction)(number, action, old);
  return change_action(number, action, old, NEXT(sigaction));
}
HL_INTERPOSED(Handler, signal, (int number, Handler handler)) {
  return is_ours(number) ? set_bsd(handler) : NEXT(signal)(number, handler);
}
HL_INTERPOSED(Handler, ssignal, (int number, Handler handler)) {
  return is_ours(number) ? set_bsd(handler) : NEXT(ssignal)(number, handler);
}
HL_INTERPOSED(Handler, bsd_signal, (int number, Handler handler)) {
  return is_ours(number) ? set_bsd(handler) : signal(number, handler);
}
HL_INTERPOSED(Handler, sysv_signal, (int number, Handler handler)) {
  return is_ours(number) ? set_sysv(handler) : NEXT(sysv_signal)(number, handler);
}
HL_INTERPOSED(Handler, __sysv_signal, (int number, Handler handler)) {
  return is_ours(number) ? set_sysv(handler) : NEXT(__sysv_signal)(number, handler);
}
HL_INTERPOSED(Handler, sigset, (int number, Handler handler)) {
  if (!is_ours(number)) return NEXT(sigset)(number, handler);
  bool blocked = hl_self_paging.block(handler == SIG_HOLD ? 1 : 0) != 0;
  struct sigaction old;
  hl_self_paging.change_action(nullptr, &old);
  Handler before = handler == SIG_HOLD ? old.sa_handler : set_bus_handler(handler, 0, true);
  return blocked ? SIG_HOLD : before;
}
HL_INTERPOSED(int, sigignore, (int number)) {
  if (!is_ours(number)) return NEXT(sigignore)(number);
  return set_bus_handler(SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

// What libc passes to the kernel as it is.
HL_HELD(int, sigpending, (sigset_t * set), (set), held.out(set))
HL_HELD(int, sigwait, (const sigset_t* set, int* number), (set, number), held.in(set))
HL_HELD(int, sigwaitinfo, (const sigset_t* set, siginfo_t* info), (set, info), held.in(set), held.out(info))
HL_HELD(int, sigtimedwait, (const sigset_t* set, siginfo_t* info, const timespec* timeout), (set, info, timeout),
        held.in(set), held.out(info), held.in(timeout))
