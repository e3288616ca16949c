#include "preload/stack_room.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/units.hpp"
#include "preload/loader_heap.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

extern "C" void* __libc_stack_end;

namespace hinterland::stack_room {

namespace {

constexpr std::size_t kNeeded = 16 * kKiB;     // four times the most that was measured
constexpr std::size_t kOfFirstMax = 8 * kMiB;  // an unlimited one grows until something is in its way
__attribute__((tls_model("initial-exec"))) thread_local stack_t t_alternate = {nullptr, SS_DISABLE, 0};

// libc would read /proc for the first thread's.
Roomy stack_of_first() {
  auto end = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return {};
  std::size_t bytes = std::min<std::size_t>(limit.rlim_cur, kOfFirstMax);
  return {end - bytes, bytes};
}

// Not known where the program has a malloc of its own: pthread_getattr_np calls realloc.
Roomy stack_of_other() {
  if (loader_heap::program_has_malloc()) return {};
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  if (pthread_attr_getstack(&attributes, &low, &bytes) != 0) bytes = 0;
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<std::uintptr_t>(low), bytes};
}

bool stands_on_alternate() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here - reinterpret_cast<std::uintptr_t>(t_alternate.ss_sp) < t_alternate.ss_size;
}

}  // namespace

void begin() {
  g_noted.store(true, std::memory_order_relaxed);
  Roomy own = raw::call(SYS_gettid) == raw::call(SYS_getpid) ? stack_of_first() : stack_of_other();
  t_roomy = own.bytes > kNeeded ? Roomy{own.low + kNeeded, own.bytes - kNeeded} : Roomy{};
}

void alternate(const stack_t& stack) {
  t_alternate = (stack.ss_flags & SS_DISABLE) != 0 ? stack_t{nullptr, SS_DISABLE, 0} : stack;
  auto low = reinterpret_cast<std::uintptr_t>(t_alternate.ss_sp);
  if (low < t_roomy.low + t_roomy.bytes && low + t_alternate.ss_size > t_roomy.low) t_roomy = {};
}

void call_elsewhere(void (*body)(void*), void* argument) {
  if (!stands_on_alternate()) return own_stack::call(body, argument);
  SignalsBlocked blocked(SignalsBlocked::kAllButFaults);
  own_stack::call(body, argument);
}

}  // namespace hinterland::stack_room

// One that is set by an instruction of the program's own is not known.
HL_INTERPOSED int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  using namespace hinterland;
  static constinit Next<int(const stack_t*, stack_t*)> next("sigaltstack");
  const bool same = stack != nullptr && stack == old;
  const stack_t asked = same ? *stack : stack_t{};
  int result = next.get()(stack, old);
  if (result == 0 && stack != nullptr && mode() == Mode::far) stack_room::alternate(same ? asked : *stack);
  return result;
}
