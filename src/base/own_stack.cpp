#include "base/own_stack.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>

#include "base/raw_call.hpp"
#include "base/roomy_stack.hpp"

namespace hinterland {

namespace stack_room {
thread_local Roomy t_roomy;
std::atomic<bool> g_noted{false};
}  // namespace stack_room

__attribute__((naked)) void call_on_stack(char* /*top*/, void (* /*body*/)(void*), void* /*argument*/) {
  __asm__(
      "push %rbp\n\t"
      ".cfi_def_cfa_offset 16\n\t"
      ".cfi_offset rbp, -16\n\t"
      "mov %rsp, %rbp\n\t"
      ".cfi_def_cfa_register rbp\n\t"
      "mov %rdi, %rsp\n\t"
      "mov %rdx, %rdi\n\t"
      "call *%rsi\n\t"
      "mov %rbp, %rsp\n\t"
      "pop %rbp\n\t"
      ".cfi_def_cfa rsp, 8\n\t"
      "ret");
}

namespace own_stack {

namespace {

// The sanitizers know of no other stacks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSwitches = false;
#elif defined(__has_feature)
constexpr bool kSwitches = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kSwitches = true;
#endif

// Below the places of programs, heaps and thread stacks: gdb takes a caller whose frame lies below its callee's for a
// broken stack, and stops. Near the low end, where it splits no large range that a program wants, above what programs
// want at low addresses (Java's heaps, code without 64-bit addresses), and not where Go's heap begins. Anywhere else
// is as good for everything but gdb.
constexpr std::uintptr_t kWanted = 0x60'0000'0000;

std::uintptr_t g_base = 0;  // changes once, in reserve()

struct alignas(64) Stack {  // a cache line each: threads take and give back different ones at the same time
  std::atomic<bool> taken{false};
  bool usable = false;  // changes once; who has taken it reads and writes it
};
std::array<Stack, kCount> g_stacks;
std::atomic<bool> g_fault_signals{false};

// Where this thread found one the last time: it is free as a rule, and nobody else's cache has it.
__attribute__((tls_model("initial-exec"))) thread_local unsigned t_latest = 0;

// Raw calls only, here and below: libc's are interposed, and lead here.
char* map_stack(std::size_t bytes, int protection, std::uintptr_t wanted = 0) {
  long made = raw::call(SYS_mmap, static_cast<long>(wanted), static_cast<long>(bytes), protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  return raw::failed(made) ? nullptr : reinterpret_cast<char*>(made);
}
bool protect(char* address, std::size_t bytes, int protection) {
  return raw::call(SYS_mprotect, raw::word_of(address), static_cast<long>(bytes), protection) == 0;
}

char* bottom_of(unsigned number) { return reinterpret_cast<char*>(g_base) + number * kBytes; }

// -1: all are taken, or the kernel has no memory.
int take() {
  for (unsigned i = 0; i < kCount; ++i) {
    const unsigned number = (t_latest + i) % kCount;
    Stack& stack = g_stacks[number];
    // acquire: pairs with give_back(); what the last user left there is done with
    if (stack.taken.load(std::memory_order_relaxed) || stack.taken.exchange(true, std::memory_order_acquire))
      continue;
    if (!stack.usable)
      stack.usable = protect(bottom_of(number) + kPageSize, kBytes - kPageSize, PROT_READ | PROT_WRITE);
    if (stack.usable) {
      t_latest = number;
      return static_cast<int>(number);
    }
    stack.taken.store(false, std::memory_order_release);
    return -1;
  }
  return -1;
}

void give_back(int number) {
  // release: pairs with take()
  g_stacks[static_cast<unsigned>(number)].taken.store(false, std::memory_order_release);
}

struct Call {
  void (*body)(void*);
  void* argument;
};

// On our stack. Where the caller's is the alternate one, that is out of use meanwhile: possible while the stack
// pointer is elsewhere, and then a signal's frame is written to where that is.
void keeping_alternate(void* pointer) {
  const Call call = *static_cast<Call*>(pointer);
  stack_t alternate{};
  raw::call(SYS_sigaltstack, 0, raw::word_of(&alternate));
  const bool stands_on_it =
      (alternate.ss_flags & SS_DISABLE) == 0 &&
      reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(alternate.ss_sp) <
          alternate.ss_size;
  if (!stands_on_it) return call.body(call.argument);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  raw::call(SYS_sigaltstack, raw::word_of(&none), 0);
  call.body(call.argument);
  raw::call(SYS_sigaltstack, raw::word_of(&alternate), 0);
}

void call_at(char* top, void (*body)(void*), void* argument) {
  // relaxed: set while there is one thread
  if (!g_fault_signals.load(std::memory_order_relaxed)) return call_on_stack(top, body, argument);
  Call asked{body, argument};
  call_on_stack(top, keeping_alternate, &asked);
}

}  // namespace

void reserve() {
  if (g_base == 0) g_base = reinterpret_cast<std::uintptr_t>(map_stack(kCount * kBytes, PROT_NONE, kWanted));
}

bool is_on() {
  return g_base != 0 && reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - g_base < kCount * kBytes;
}

void expect_fault_signals() { g_fault_signals.store(true); }

void call(void (*body)(void*), void* argument) {
  if (!kSwitches || g_base == 0 || is_on()) return body(argument);
  if (int number = take(); number >= 0) {
    call_at(bottom_of(static_cast<unsigned>(number)) + kBytes, body, argument);
    return give_back(number);
  }
  char* stack = map_stack(kBytes, PROT_READ | PROT_WRITE);
  if (stack == nullptr) return body(argument);
  protect(stack, kPageSize, PROT_NONE);
  call_at(stack + kBytes, body, argument);
  raw::call(SYS_munmap, raw::word_of(stack), kBytes);
}

}  // namespace own_stack
}  // namespace hinterland
