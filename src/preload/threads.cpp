#include "preload/threads.hpp"

#include <link.h>
#include <pthread.h>
#include <sys/rseq.h>
#include <threads.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/inside.hpp"
#include "base/units.hpp"
#include "preload/catching.hpp"
#include "preload/limits.hpp"
#include "preload/local_heap.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/stack_room.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

// glibc 2.35; without them the pager does not know where threads run.
#pragma weak __rseq_offset
#pragma weak __rseq_size

namespace hinterland::threads {
namespace {

std::atomic<long> g_count{1};  // threads of the program, the main thread included
// A thread has ended, or could not be made, in this process or before it was forked: libc may have its stack, and
// give it to another.
std::atomic<bool> g_stacks_left{false};
pthread_key_t g_key;
bool g_have_key = false;

const volatile std::uint32_t* cpu_word() {
  if (&__rseq_size == nullptr || &__rseq_offset == nullptr || __rseq_size == 0) return nullptr;
  auto* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  return &reinterpret_cast<const volatile struct rseq*>(area)->cpu_id;
}

// A thread's end, whichever way: return, pthread_exit (main's, too) or cancellation. The value counts the rounds of
// destructors, so that this one runs in the last: others' destructors still use far memory.
void thread_ends(void* value) {
  auto round = reinterpret_cast<std::uintptr_t>(value);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  g_stacks_left.store(true, std::memory_order_relaxed);  // libc takes the stack after this
  uninterrupted([] { pager().thread_ended(); });
  // libc would call exit() here, did it not count the runtime's threads
  if (g_count.fetch_sub(1) == 1) std::exit(0);
}

struct Range {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
};

// The calling thread's copy of this library's thread_local variables.
Range own_variables() {
  Range found;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        bool ours = false;
        const ElfW(Phdr)* variables = nullptr;
        for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
          std::uintptr_t start = object->dlpi_addr + segment.p_vaddr;
          ours = ours ||
                 (segment.p_type == PT_LOAD && reinterpret_cast<std::uintptr_t>(&g_count) - start < segment.p_memsz);
          if (segment.p_type == PT_TLS) variables = &segment;
        }
        if (!ours || variables == nullptr || object->dlpi_tls_data == nullptr) return ours ? 1 : 0;
        *static_cast<Range*>(out) = {reinterpret_cast<std::uintptr_t>(object->dlpi_tls_data), variables->p_memsz};
        return 1;
      },
      &found);
  return found;
}

// The stack of a thread, and with it what libc keeps of it, may be far memory (pthread_attr_setstack). The kernel
// writes there when it switches CPUs (rseq) and when the thread ends (the robust list, the word that pthread_join
// waits for), and in the end it does not wait for faults: a page that is far then would leave pthread_join waiting
// for ever. Below the block lie the thread's own variables, of which the runtime and its allocator have some: they
// are touched under locks (I6).
void hold_thread_block() {
  auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  if (!pager().contains(self)) return;
  auto [variables, bytes] = own_variables();
  if (bytes != 0) pager().hold(variables, bytes);
  std::uintptr_t robust_list = 0;
  std::size_t length = 0;
  raw::call(SYS_get_robust_list, 0, reinterpret_cast<long>(&robust_list), reinterpret_cast<long>(&length));
  // In the block: header, thread id (the word), robust list, in this order.
  if (robust_list >= self && robust_list - self < kPageSize) pager().hold(self, robust_list + length - self);
  if (auto cpu = reinterpret_cast<std::uintptr_t>(cpu_word()); cpu != 0) pager().hold(cpu, sizeof(std::uint32_t));
}

void thread_starts() {
  if (g_have_key) pthread_setspecific(g_key, reinterpret_cast<void*>(std::uintptr_t{1}));
  uninterrupted([] {
    hold_thread_block();
    stack_room::begin();
    pager().thread_started(cpu_word());
  });
  catching::begin_in_thread();
}

struct Start {
  void* (*routine)(void*);
  void* argument;
};

// The stack of either thread may be small.
void* allocate_local(std::size_t bytes) {
  return uninterrupted([=] { return local_heap::allocate(bytes); });
}
void release_local(void* block) {
  uninterrupted([=] { local_heap::release(block); });
}

void* run(void* pointer) {
  auto* block = static_cast<Start*>(pointer);
  Start start = *block;
  release_local(block);
  thread_starts();
  return start.routine(start.argument);
}

struct C11Start {
  thrd_start_t routine;
  void* argument;
};

void* run_c11(void* pointer) {
  auto* block = static_cast<C11Start*>(pointer);
  C11Start start = *block;
  release_local(block);
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(start.routine(start.argument)));
}

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
constinit Next<Create> g_next_create("pthread_create");

struct Stack {
  std::size_t bytes = 0, guard = 0;
};

// What libc maps for a thread: nothing where the program gives a stack.
Stack stack_of(const pthread_attr_t* attributes) {
  pthread_attr_t by_default;
  void* lowest = nullptr;
  Stack stack;
  if (attributes == nullptr && pthread_getattr_default_np(&by_default) != 0) return {};
  const pthread_attr_t* asked = attributes != nullptr ? attributes : &by_default;
  pthread_attr_getguardsize(asked, &stack.guard);
  pthread_attr_getstack(asked, &lowest, &stack.bytes);
  const bool is_given = reinterpret_cast<std::uintptr_t>(lowest) + stack.bytes != 0;
  pthread_attr_getstacksize(asked, &stack.bytes);
  if (attributes == nullptr) pthread_attr_destroy(&by_default);
  return is_given ? Stack{} : stack;
}

// By the limits that the program set. libc maps stacks by itself, and keeps those of threads that have ended: whether
// it has one left cannot be known, and then it is not refused.
bool has_room_for(const pthread_attr_t* attributes) {
  if (!limits::are_set() || g_stacks_left.load(std::memory_order_relaxed)) return true;
  return uninterrupted([=] {
    const Stack stack = stack_of(attributes);
    return limits::allow(stack.bytes + stack.guard, false) && limits::allow(stack.bytes, true);
  });
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  if (!serves_program()) return g_next_create.get()(thread, attributes, routine, argument);
  if (!has_room_for(attributes)) return EAGAIN;
  auto* start = static_cast<Start*>(allocate_local(sizeof(Start)));
  if (start == nullptr) return EAGAIN;
  *start = {routine, argument};
  g_count.fetch_add(1);
  int error = g_next_create.get()(thread, attributes, run, start);
  if (error != 0) {
    g_stacks_left.store(true, std::memory_order_relaxed);
    g_count.fetch_sub(1);
    release_local(start);
  }
  return error;
}

}  // namespace

void start() {
  g_next_create.resolve();
  g_have_key = pthread_key_create(&g_key, thread_ends) == 0;
  thread_starts();
}

void after_fork_in_child() {
  if (g_count.load() > 1) g_stacks_left.store(true, std::memory_order_relaxed);  // of the others
  g_count.store(1);
}
bool is_last() { return g_count.load() == 1; }

}  // namespace hinterland::threads

HL_INTERPOSED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                                 void* argument) noexcept {
  return hinterland::threads::create(thread, attributes, routine, argument);
}

// glibc's would start the thread without us.
HL_INTERPOSED int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  using namespace hinterland;
  static constinit Next<int(thrd_t*, thrd_start_t, void*)> next("thrd_create");
  if (!serves_program()) return next.get()(thread, routine, argument);
  auto* start = static_cast<threads::C11Start*>(threads::allocate_local(sizeof(threads::C11Start)));
  if (start == nullptr) return thrd_nomem;
  *start = {routine, argument};
  int error = threads::create(thread, nullptr, threads::run_c11, start);
  if (error == 0) return thrd_success;
  threads::release_local(start);
  return error == ENOMEM ? thrd_nomem : thrd_error;
}
