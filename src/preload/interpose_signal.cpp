// sigaction and its older kin: the program does not meet the handler that writes core files (crash.hpp).
#include <signal.h>

#include <cerrno>
#include <cstring>

#include "base/signal_handlers.hpp"
#include "preload/crash.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"
#include "preload/trap_signal.hpp"

namespace {

using Handler = void (*)(int);
using hinterland::Next;
namespace crash = hinterland::crash;
namespace trap_signal = hinterland::trap_signal;

using KernelAction = trap_signal::KernelAction;
// As crash::change_action(), and SIGSYS as the program means it.
int change_action(int number, const struct sigaction* action, struct sigaction* old) {
  if (!trap_signal::is_ours()) return crash::change_action(number, action, old);
  KernelAction wanted{}, before{};
  if (action != nullptr) wanted = trap_signal::as_kernels(*action);
  const KernelAction* asked = action != nullptr ? &wanted : nullptr;
  auto by_libc = [number](const KernelAction* given, KernelAction* found) {
    struct sigaction libcs_given, libcs_found;
    if (given != nullptr) libcs_given = trap_signal::as_libcs(*given);
    int result = crash::change_action(number, given != nullptr ? &libcs_given : nullptr, &libcs_found);
    if (result == 0) *found = trap_signal::as_kernels(libcs_found);
    return result;
  };
  int problem = 0;
  if (number == SIGSYS)
    trap_signal::exchange(asked, &before);
  else
    problem = trap_signal::change_action(number, asked, &before, trap_signal::kBit, by_libc);
  if (problem == 0 && old != nullptr) *old = trap_signal::as_libcs(before);
  return problem;
}

// Whether the functions of old cannot do it alone.
bool watches(int number) { return crash::watches(number) || trap_signal::is_ours(number); }

// Hints rely on there being no handlers until we say so.
void note(int number, Handler handler) {
  if (handler != SIG_DFL && handler != SIG_IGN) hinterland::signal_handlers::expect(number);
}

Handler set_handler(int number, Handler handler, int flags, bool blocks_itself) {
  struct sigaction action, old;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (blocks_itself) sigaddset(&action.sa_mask, number);
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return change_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

// signal() in its two fashions.
Handler bsd(int number, Handler handler) {
  static constinit Next<Handler(int, Handler)> next("signal");
  note(number, handler);
  return watches(number) ? set_handler(number, handler, SA_RESTART, true) : next.get()(number, handler);
}
Handler sysv(int number, Handler handler) {
  static constinit Next<Handler(int, Handler)> next("sysv_signal");
  constexpr int kOnce = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  note(number, handler);
  return watches(number) ? set_handler(number, handler, kOnce, false) : next.get()(number, handler);
}

}  // namespace

HL_INTERPOSED int sigaction(int number, const struct sigaction* action, struct sigaction* old) noexcept {
  if (action != nullptr) note(number, action->sa_handler);
  return change_action(number, action, old);
}
HL_INTERPOSED Handler signal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler ssignal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler bsd_signal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler sysv_signal(int number, Handler handler) noexcept { return sysv(number, handler); }
HL_INTERPOSED Handler __sysv_signal(int number, Handler handler) noexcept { return sysv(number, handler); }
HL_INTERPOSED Handler sigset(int number, Handler handler) noexcept {
  static constinit Next<Handler(int, Handler)> next("sigset");
  if (handler != SIG_HOLD) note(number, handler);
  if (trap_signal::is_ours(number)) {
    bool blocked = trap_signal::block(handler == SIG_HOLD);
    KernelAction found{};
    trap_signal::exchange(nullptr, &found);
    Handler had = trap_signal::as_libcs(found).sa_handler;
    if (handler != SIG_HOLD) had = set_handler(number, handler, 0, true);
    return blocked ? SIG_HOLD : had;
  }
  Handler old = next.get()(number, handler);
  return crash::is_our_handler(old) ? SIG_DFL : old;
}
