#include "object/arrival_loops.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hinterland::object {
namespace {

ArrivalLoop* g_loops = nullptr;

// 0 or -errno.
int watch(const ArrivalLoop& of, int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(of.set, EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST ? 0 : -errno;
}

void close_all(ArrivalLoop& of) {
  for (int* descriptor : {&of.set, &of.event})
    if (const int open = std::exchange(*descriptor, -1); open >= 0) ::close(open);
  of.watched = -1;
  of.signalled = false;
}

}  // namespace

// --- lists
// -----------------------------------------------------------------------------------------------------------

void add_ready(ArrivalLoop& of, Arrival& who) {
  who.next = nullptr;
  (of.last != nullptr ? of.last->next : of.first) = &who;
  of.last = &who;
  signal(of);
}

void strike_ready(ArrivalLoop& of, Arrival& who) {
  strike(of.first, who);
  of.last = of.first;
  while (of.last != nullptr && of.last->next != nullptr) of.last = of.last->next;
}

void add_loop(ArrivalLoop& added) {
  added.next = g_loops;
  if (g_loops != nullptr) g_loops->before = &added;
  g_loops = &added;
}

void remove_loop(ArrivalLoop& removed) {
  (removed.before != nullptr ? removed.before->next : g_loops) = removed.next;
  if (removed.next != nullptr) removed.next->before = removed.before;
  close_all(removed);
}

// --- descriptors
// -----------------------------------------------------------------------------------------------------

int make_descriptor(ArrivalLoop& of) {
  if (of.set >= 0) return 0;
  of.set = ::epoll_create1(EPOLL_CLOEXEC);
  of.event = of.set >= 0 ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
  const int failed = of.event >= 0 ? watch(of, of.event) : -errno;
  if (failed != 0) close_all(of);
  return failed;
}

void signal(ArrivalLoop& of) {
  if (!of.gathering) set_signal(of, true);
}

void set_signal(ArrivalLoop& of, bool readable) {
  if (of.event < 0 || of.signalled == readable) return;
  of.signalled = readable;
  std::uint64_t count = 1;
  // Neither can fail but where the program has closed the descriptor: then it has lost the loop.
  if (readable)
    static_cast<void>(!::write(of.event, &count, sizeof count));
  else
    static_cast<void>(!::read(of.event, &count, sizeof count));
}

void forget_descriptors() {
  for (ArrivalLoop* each = g_loops; each != nullptr; each = each->next) close_all(*each);
}

// --- of Arrivals
// -----------------------------------------------------------------------------------------------------

// True: it waits no longer for somebody who blocks.
bool Arrivals::watch_again(Arrival& who) {
  const Grace::Scope held;
  if (!held) return false;
  for (;;) {
    std::uint64_t value;
    if (void* there = heap_.reach_there(who.where, who.flags, &value, false)) {
      heap_.local_->pin(there);
      tell(who, 0, there);
      return true;
    }
    if (is_kind(value, kLeaving) || (is_kind(value, kArriving) && bringing_of(who.where) == nullptr)) return false;
    const Begun begun = begin_locked(who, true);
    if (begun == Begun::there) continue;  // others were faster
    if (begun == Begun::over) tell(who, who.error, nullptr);
    return true;
  }
}

void Arrivals::look_after(ArrivalLoop& of, bool all) {
  for (Arrival *each = std::exchange(of.watching, nullptr), *next; each != nullptr; each = next) {
    next = each->next;
    if (!watch_again(*each)) each->next = std::exchange(of.watching, each);
  }
  drive_locked(all);
}

Arrival* Arrivals::gather(ArrivalLoop& of) {
  LockGuard guard(mutex());
  of.gathering = true;
  if (of.first == nullptr) look_after(of, false);
  Arrival* found = of.first;
  if (found == nullptr) return nullptr;
  of.first = found->next;
  if (of.first == nullptr) of.last = nullptr;
  found->state.store(kOver, std::memory_order_relaxed);
  return found;
}

// What waits for something that no descriptor tells of, room or a thread that blocks, is looked at all the time.
void Arrivals::settle(ArrivalLoop& of) {
  LockGuard guard(mutex());
  look_after(of, true);
  of.gathering = false;
  if (of.set < 0) return;
  // Added each time, for a device may have a new descriptor under the old number. And taken out where nothing is on
  // its way: it may be readable in vain, and nobody would ask it.
  const int now = bringing_ != nullptr && port_ != nullptr ? port_->channel().event_descriptor() : -1;
  if (now >= 0)
    of.watched = watch(of, now) == 0 ? now : -1;
  else if (const int device = std::exchange(of.watched, -1); device >= 0)
    ::epoll_ctl(of.set, EPOLL_CTL_DEL, device, nullptr);
  set_signal(of, of.first != nullptr || of.watching != nullptr || without_room_ != 0);
}

void Arrivals::forget_all(ArrivalLoop& of) {
  for (Arrival* each = of.watching; each != nullptr; each = each->next)
    each->state.store(kOver, std::memory_order_relaxed);
  for (Arrival *each = of.first, *next; each != nullptr; each = next) {
    next = each->next;
    if (each->error == 0) heap_.local_->unpin(each->object);
    each->state.store(kOver, std::memory_order_relaxed);
  }
  for (Bringing* bringing = bringing_; bringing != nullptr; bringing = bringing->next)
    for (Arrival **at = &bringing->waiters, *who; (who = *at) != nullptr;) {
      if (who->gathers != &of) {
        at = &who->next;
        continue;
      }
      *at = who->next;
      who->state.store(kOver, std::memory_order_relaxed);
    }
  of.watching = of.first = of.last = nullptr;
}

}  // namespace hinterland::object
