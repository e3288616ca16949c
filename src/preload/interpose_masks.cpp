// Signal masks under --catch: the kernel is not told that SIGSYS is blocked (trap_signal.hpp).
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <cerrno>
#include <cstring>

#include "preload/next.hpp"
#include "preload/state.hpp"
#include "preload/trap_signal.hpp"

namespace {

using namespace hinterland;

constinit Next<int(int, const sigset_t*, sigset_t*)> g_sigprocmask("sigprocmask");
constinit Next<int(int, const sigset_t*, sigset_t*)> g_pthread_sigmask("pthread_sigmask");
constinit Next<int(const sigset_t*)> g_sigsuspend("sigsuspend");
constinit Next<int(int)> g_sigblock("sigblock");
constinit Next<int(int)> g_sigsetmask("sigsetmask");
constinit Next<int(int)> g_sighold("sighold");
constinit Next<int(int)> g_sigrelse("sigrelse");
constinit Next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> g_ppoll("ppoll");
constinit Next<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> g_pselect("pselect");
constinit Next<int(int, epoll_event*, int, int, const sigset_t*)> g_epoll_pwait("epoll_pwait");
constinit Next<int(int, epoll_event*, int, const timespec*, const sigset_t*)> g_epoll_pwait2("epoll_pwait2");

constexpr int kOldBit = 1 << (SIGSYS - 1);

// A mask of the program's for the time of one call.
class Mask {
 public:
  explicit Mask(const sigset_t* asked) : asked_(asked) {
    if (asked_ == nullptr || !trap_signal::is_ours()) return;
    copy_ = *asked_;
    sigdelset(&copy_, SIGSYS);
    asked_ = &copy_;
  }
  const sigset_t* get() const { return asked_; }

 private:
  const sigset_t* asked_;
  sigset_t copy_;
};

template <typename Function>
int change(Function* next, int how, const sigset_t* set, sigset_t* old) {
  if (!trap_signal::is_ours() || !serves_program()) return next(how, set, old);
  sigset_t given, before;
  std::uint64_t word = 0;
  if (set != nullptr) {
    given = *set;
    std::memcpy(&word, set, sizeof word);
  }
  // The new mask counts from here on, before a signal that waited is delivered.
  const std::uint64_t believed = trap_signal::hide(trap_signal::kBit, how, set != nullptr ? &word : nullptr);
  std::memcpy(&given, &word, sizeof word);
  if (int problem = next(how, set != nullptr ? &given : nullptr, &before); problem != 0) return problem;
  std::memcpy(&word, &before, sizeof word);
  word |= believed;
  std::memcpy(&before, &word, sizeof word);
  if (old != nullptr) *old = before;
  return 0;
}

}  // namespace

namespace hinterland {
// Later it may be a signal handler that asks for them first.
void resolve_masks() {
  g_sigprocmask.resolve();
  g_pthread_sigmask.resolve();
  g_sigsuspend.resolve();
  g_sigblock.resolve();
  g_sigsetmask.resolve();
  g_sighold.resolve();
  g_sigrelse.resolve();
  g_ppoll.resolve();
  g_pselect.resolve();
  g_epoll_pwait.resolve();
  g_epoll_pwait2.resolve();
}
}  // namespace hinterland

HL_INTERPOSED int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return change(g_sigprocmask.get(), how, set, old);
}
HL_INTERPOSED int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return change(g_pthread_sigmask.get(), how, set, old);
}
HL_INTERPOSED int sigsuspend(const sigset_t* mask) { return g_sigsuspend.get()(Mask(mask).get()); }
HL_INTERPOSED int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return g_ppoll.get()(files, count, timeout, Mask(mask).get());
}
HL_INTERPOSED int pselect(int count, fd_set* in, fd_set* out, fd_set* others, const timespec* timeout,
                          const sigset_t* mask) {
  return g_pselect.get()(count, in, out, others, timeout, Mask(mask).get());
}
HL_INTERPOSED int epoll_pwait(int set, epoll_event* events, int count, int timeout, const sigset_t* mask) {
  return g_epoll_pwait.get()(set, events, count, timeout, Mask(mask).get());
}
HL_INTERPOSED int epoll_pwait2(int set, epoll_event* events, int count, const timespec* timeout,
                               const sigset_t* mask) {
  return g_epoll_pwait2.get()(set, events, count, timeout, Mask(mask).get());
}
HL_INTERPOSED int sighold(int number) noexcept {
  if (!trap_signal::is_ours(number)) return g_sighold.get()(number);
  trap_signal::block(true);
  return 0;
}
HL_INTERPOSED int sigrelse(int number) noexcept {
  if (!trap_signal::is_ours(number)) return g_sigrelse.get()(number);
  trap_signal::block(false);
  return 0;
}
// The old ones, with a mask of 32 signals.
HL_INTERPOSED int sigblock(int mask) noexcept {
  if (!trap_signal::is_ours()) return g_sigblock.get()(mask);
  int before = g_sigblock.get()(mask & ~kOldBit);
  bool blocked = (mask & kOldBit) != 0 ? trap_signal::block(true) : trap_signal::is_blocked();
  return before | (blocked ? kOldBit : 0);
}
HL_INTERPOSED int sigsetmask(int mask) noexcept {
  if (!trap_signal::is_ours()) return g_sigsetmask.get()(mask);
  int before = g_sigsetmask.get()(mask & ~kOldBit);
  return before | (trap_signal::block((mask & kOldBit) != 0) ? kOldBit : 0);
}
