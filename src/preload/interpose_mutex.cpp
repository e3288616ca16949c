// Mutexes that the kernel writes to by itself: robust ones when their owner dies, priority-inheriting ones when they
// change hands. It does not wait for faults there (it gives up: EFAULT, or a mutex that nobody gets any more), so
// their pages stay local.
#include <pthread.h>

#include "preload/next.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace {

using namespace hinterland;

// Bits of pthread_mutex_t.__data.__kind, part of glibc's ABI (static initialisers have them): robust, and
// priority-inheriting.
constexpr int kRobust = 16, kInherits = 32;

bool is_for_kernel(const pthread_mutex_t* mutex) {
  return mutex->__data.__kind > 0 && (mutex->__data.__kind & (kRobust | kInherits)) != 0;
}
bool ask_for_kernel(const pthread_mutexattr_t* attributes) {
  if (attributes == nullptr) return false;
  int robust = PTHREAD_MUTEX_STALLED, protocol = PTHREAD_PRIO_NONE;
  pthread_mutexattr_getrobust(attributes, &robust);
  pthread_mutexattr_getprotocol(attributes, &protocol);
  return robust == PTHREAD_MUTEX_ROBUST || protocol == PTHREAD_PRIO_INHERIT;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

HL_INTERPOSED int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept {
  static constinit Next<int(pthread_mutex_t*, const pthread_mutexattr_t*)> next("pthread_mutex_init");
  if (!serves_program() || !pager().contains(number(mutex)) || !ask_for_kernel(attributes))
    return next.get()(mutex, attributes);
  // Before libc writes to it: a fault there would be served on the caller's stack by signal.
  uninterrupted([=] { pager().hold(number(mutex), sizeof *mutex); });
  int error = next.get()(mutex, attributes);
  if (error != 0) uninterrupted([=] { pager().let_go(number(mutex), sizeof *mutex); });
  return error;
}

HL_INTERPOSED int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  static constinit Next<int(pthread_mutex_t*)> next("pthread_mutex_destroy");
  bool held = serves_program() && pager().contains(number(mutex)) && is_for_kernel(mutex);
  int error = next.get()(mutex);
  if (error == 0 && held) uninterrupted([=] { pager().let_go(number(mutex), sizeof *mutex); });
  return error;
}
