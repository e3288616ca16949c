// sigaction and its older kin: the program does not meet the handler that writes core files (crash.hpp).
#include <signal.h>

#include <cerrno>
#include <cstring>

#include "base/signal_handlers.hpp"
#include "preload/crash.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"

namespace {

using Handler = void (*)(int);
using hinterland::Next;
namespace crash = hinterland::crash;

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
  return crash::change_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

// signal() in its two fashions.
Handler bsd(int number, Handler handler) {
  static constinit Next<Handler(int, Handler)> next("signal");
  note(number, handler);
  return crash::watches(number) ? set_handler(number, handler, SA_RESTART, true) : next.get()(number, handler);
}
Handler sysv(int number, Handler handler) {
  static constinit Next<Handler(int, Handler)> next("sysv_signal");
  constexpr int kOnce = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  note(number, handler);
  return crash::watches(number) ? set_handler(number, handler, kOnce, false) : next.get()(number, handler);
}

}  // namespace

HL_INTERPOSED int sigaction(int number, const struct sigaction* action, struct sigaction* old) noexcept {
  if (action != nullptr) note(number, action->sa_handler);
  return crash::change_action(number, action, old);
}
HL_INTERPOSED Handler signal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler ssignal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler bsd_signal(int number, Handler handler) noexcept { return bsd(number, handler); }
HL_INTERPOSED Handler sysv_signal(int number, Handler handler) noexcept { return sysv(number, handler); }
HL_INTERPOSED Handler __sysv_signal(int number, Handler handler) noexcept { return sysv(number, handler); }
HL_INTERPOSED Handler sigset(int number, Handler handler) noexcept {
  static constinit Next<Handler(int, Handler)> next("sigset");
  if (handler != SIG_HOLD) note(number, handler);
  Handler old = next.get()(number, handler);
  return crash::is_our_handler(old) ? SIG_DFL : old;
}
