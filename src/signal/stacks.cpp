// Stacks for faults. The kernel writes the frame of SIGBUS to the stack of the thread that faults, or to its
// alternate one; where that page is far, it ends the process. So each thread gets an alternate stack that is local,
// with a second part on which faults are served, because the program may replace the first by one of its own, of 2
// KiB.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "signal/held.hpp"
#include "signal/interposed.hpp"
#include "signal/local_memory.hpp"

using namespace hinterland;

namespace {

// Guard, part for serving, guard, alternate stack. Serving takes 32 KiB at most (fiber/parking.hpp: hints take as
// much); a handler of the program's may run on the alternate one.
constexpr std::size_t kPart = 128 * kKiB;
constexpr std::size_t kBlock = 2 * kPart + 2 * kPageSize;

thread_local char* t_block = nullptr;
thread_local stack_t t_asked = {nullptr, SS_DISABLE, 0};  // by the program
pthread_key_t g_key;
bool g_have_key = false;

char* make_block() {
  auto* block = static_cast<char*>(map_local(kBlock));
  if (block == nullptr) return nullptr;
  for (char* guard : {block, block + kPageSize + kPart})
    raw::call(SYS_mprotect, reinterpret_cast<long>(guard), static_cast<long>(kPageSize), PROT_NONE);
  return block;
}

long set_alternate(void* base, std::size_t bytes, int flags = 0) {
  stack_t stack{base, flags, bytes};
  return syscall(SYS_sigaltstack, &stack, nullptr);
}
long set_own_alternate() { return set_alternate(t_block + 2 * kPageSize + kPart, kPart); }

// The stack of a thread may itself be far. It is needed before the thread has the other one, and when that is gone.
void hold_top_of_stack(const pthread_attr_t* attributes) {
  void* lowest = nullptr;
  std::size_t bytes = 0;
  if (attributes == nullptr || pthread_attr_getstack(attributes, &lowest, &bytes) != 0) return;
  std::size_t top = bytes < 64 * kKiB ? bytes : 64 * kKiB;
  if (is_far(lowest)) hl_self_paging.hold(reinterpret_cast<std::uintptr_t>(lowest) + (bytes - top), top, true);
}

void use_block(char* block) {
  t_block = block;
  hl_self_paging.use_stack(block + kPageSize, kPart);
  set_own_alternate();
  if (g_have_key) pthread_setspecific(g_key, reinterpret_cast<void*>(std::uintptr_t{1}));
}

// In the last round of destructors: those of others still touch far memory.
void thread_ends(void* value) {
  auto round = reinterpret_cast<std::uintptr_t>(value);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  hl_self_paging.use_stack(nullptr, 0);
  // Refused on a thread that ends on its alternate stack: then the block stays.
  if (t_asked.ss_flags == SS_DISABLE && set_alternate(nullptr, 0, SS_DISABLE) != 0) return;
  unmap_local(t_block, kBlock);
  t_block = nullptr;
}

struct Start {
  void* (*routine)(void*);
  void* argument;
  char* block;
  bool blocks_bus;
};

void* run(void* pointer) {
  Start start = *static_cast<Start*>(pointer);
  unmap_local(pointer, sizeof(Start));
  use_block(start.block);
  if (start.blocks_bus) hl_self_paging.block(1);
  return start.routine(start.argument);
}

}  // namespace

// The new thread begins with all signals blocked, SIGBUS among them, until libc has set its mask: what it reads until
// then is not far.
HL_INTERPOSED(int, pthread_create,
              (pthread_t * thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument)) {
  if (!self_paging()) return NEXT(pthread_create)(thread, attributes, routine, argument);
  char* block = make_block();
  if (block == nullptr) return EAGAIN;
  void* place = map_local(sizeof(Start));
  if (place == nullptr) {
    unmap_local(block, kBlock);
    return EAGAIN;
  }
  auto* start = new (place) Start{routine, argument, block, hl_self_paging.is_blocked() != 0};
  Held held;
  held.out(thread);
  held.in(attributes);
  hold_top_of_stack(attributes);
  int error = held.done(NEXT(pthread_create)(thread, attributes, run, start));
  if (error == 0) return 0;
  unmap_local(block, kBlock);
  unmap_local(start, sizeof(Start));
  return error;
}

// Told before libc acts on it.
HL_INTERPOSED(int, pthread_setcanceltype, (int type, int* old)) {
  if (!self_paging()) return NEXT(pthread_setcanceltype)(type, old);
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS) hl_self_paging.cancel_at_once(1);
  int error = NEXT(pthread_setcanceltype)(type, old);
  if (error == 0 && type != PTHREAD_CANCEL_ASYNCHRONOUS) hl_self_paging.cancel_at_once(0);
  return error;
}

HL_INTERPOSED(int, sigaltstack, (const stack_t* stack, stack_t* old)) {
  if (!self_paging() || t_block == nullptr) return NEXT(sigaltstack)(stack, old);
  stack_t before{};
  syscall(SYS_sigaltstack, nullptr, &before);
  const bool on_it = (before.ss_flags & SS_ONSTACK) != 0;
  stack_t answer = t_asked;
  if (answer.ss_flags != SS_DISABLE && on_it) answer.ss_flags |= SS_ONSTACK;
  if (stack != nullptr) {
    stack_t wanted = *stack;
    if ((wanted.ss_flags & SS_DISABLE) != 0) {
      if (set_own_alternate() != 0) return -1;
      wanted = {nullptr, SS_DISABLE, 0};
    } else {
      // The kernel's frame, and what the program's handler does until its first fault is served. Written, and held.
      if (is_far(wanted.ss_sp))
        hl_self_paging.hold(reinterpret_cast<std::uintptr_t>(wanted.ss_sp), wanted.ss_size, true);
      if (NEXT(sigaltstack)(&wanted, nullptr) != 0) return -1;
    }
    if (is_far(t_asked.ss_sp))
      hl_self_paging.let_go(reinterpret_cast<std::uintptr_t>(t_asked.ss_sp), t_asked.ss_size);
    t_asked = wanted;
  }
  if (old != nullptr) *old = answer;
  return 0;
}

namespace hinterland {
// The first thread's where the runtime is there already. Else it does without; threads that come later do not.
void start_stacks() {
  g_have_key = pthread_key_create(&g_key, thread_ends) == 0;
  if (!self_paging()) return;
  char* block = make_block();
  if (block != nullptr) use_block(block);
}
}  // namespace hinterland
