// Children by other calls than fork: clone() of libc, and clone, clone3 and fork through syscall(2). Where they copy
// the memory (no CLONE_VM) they go the way of fork, so that the child has its far memory; all others pass.
//
// Some copies cannot have far memory and pass, too: those that share the table of descriptors (the runtime's own
// would be closed for both), bring a thread pointer, or begin on another stack in the middle of syscall(2). What
// becomes of far memory in these says Pager::Impl::keep_from_copies().
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "base/signal_handlers.hpp"
#include "preload/forking.hpp"
#include "preload/held_for_call.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/threads.hpp"

namespace {

using namespace hinterland;

constexpr std::uint64_t kOurs = CLONE_VM | CLONE_FILES | CLONE_SETTLS;  // with one of these the call passes
constexpr std::size_t kNamespacesMax = 32;                              // the kernel's MAX_PID_NS_LEVEL

bool copies(std::uint64_t flags) { return (flags & kOurs) == 0; }

// One such call. Far memory stands still while the kernel does it, so that it may meet none: what it reads lies here,
// and what it would write is written here, and handed over afterwards.
class Copying {
 public:
  // clone(2), with the signal in the lowest byte of the flags.
  Copying(std::uint64_t flags, int* parent_id, int* child_id) {
    asked_.flags = flags & ~std::uint64_t{CSIGNAL};
    asked_.exit_signal = flags & CSIGNAL;
    asked_.parent_tid = asked_.pidfd = reinterpret_cast<std::uintptr_t>(parent_id);  // one for both
    asked_.child_tid = reinterpret_cast<std::uintptr_t>(child_id);
  }
  // clone3(2).
  Copying(const clone_args* arguments, std::size_t size) : size_(size) {
    std::memcpy(&asked_, arguments, size);
    std::size_t levels = std::min<std::size_t>(asked_.set_tid_size, kNamespacesMax);
    if (asked_.set_tid != 0)
      std::memcpy(ids_wanted_.data(), reinterpret_cast<const void*>(asked_.set_tid), levels * sizeof(int));
  }

  // As the system call, but -1 with errno.
  pid_t make() {
    pid_t child = forking::fork_by([](void* self) { return static_cast<Copying*>(self)->call(); }, this);
    if (child == 0) finish_in_child();
    if (child > 0) finish_in_parent();
    return child;
  }

 private:
  long call() {
    clone_args given = asked_;
    // The parent of a CLONE_VFORK would sleep with everything locked. A copy of the memory needs no such sleep.
    given.flags &= ~std::uint64_t{CLONE_VFORK | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID};
    given.parent_tid = reinterpret_cast<std::uintptr_t>(&parent_id_);
    given.pidfd = reinterpret_cast<std::uintptr_t>(size_ == 0 ? &parent_id_ : &descriptor_);
    if (given.set_tid != 0) given.set_tid = reinterpret_cast<std::uintptr_t>(ids_wanted_.data());
    if (size_ != 0) return raw::call(SYS_clone3, reinterpret_cast<long>(&given), static_cast<long>(size_));
    return raw::call(SYS_clone, static_cast<long>(given.flags | given.exit_signal), 0,
                     static_cast<long>(given.parent_tid), 0, 0);
  }

  bool asked_for(std::uint64_t flag) const { return (asked_.flags & flag) != 0; }
  static void store(std::uint64_t address, int value) { *reinterpret_cast<int*>(address) = value; }

  void finish_in_parent() const {
    if (asked_for(CLONE_PARENT_SETTID)) store(asked_.parent_tid, parent_id_);
    if (asked_for(CLONE_PIDFD)) store(asked_.pidfd, size_ == 0 ? parent_id_ : descriptor_);
  }
  void finish_in_child() const {
    if (asked_for(CLONE_CHILD_SETTID)) store(asked_.child_tid, static_cast<int>(raw::call(SYS_gettid)));
    if (asked_for(CLONE_CHILD_CLEARTID)) raw::call(SYS_set_tid_address, static_cast<long>(asked_.child_tid));
  }

  clone_args asked_{};
  std::size_t size_ = 0;  // of clone3's arguments; 0: clone
  std::array<int, kNamespacesMax> ids_wanted_{};
  int parent_id_ = 0, descriptor_ = -1;
};

using Entry = int(void*);

[[noreturn]] void run(Entry* entry, void* argument) { _exit(entry(argument)); }

// In a child of clone(): goes on with the function that the program gave, on the stack that it gave.
[[noreturn]] void run_on(void* stack, Entry* entry, void* argument) {
  auto top = reinterpret_cast<std::uintptr_t>(stack) & ~std::uintptr_t{15};
  __asm__ volatile(
      "mov %0, %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "call *%1\n\t"
      "hlt"
      :
      : "a"(top), "d"(&run), "D"(entry), "S"(argument)
      : "memory");
  __builtin_unreachable();
}

constinit Next<int(Entry*, void*, int, void*, ...)> g_next_clone("clone");

int do_clone(Entry* entry, void* stack, int flags, void* argument, int* parent_id, void* block, int* child_id) {
  auto bits = static_cast<std::uint32_t>(flags);
  if (!serves_program() || entry == nullptr || stack == nullptr || !copies(bits))
    return g_next_clone.get()(entry, stack, flags, argument, parent_id, block, child_id);
  pid_t child = Copying(bits, parent_id, child_id).make();
  if (child == 0) run_on(stack, entry, argument);
  return child;
}

// With the program's only thread its process ends: the runtime's threads would go on, and keep it. Threads that were
// made by clone are not counted, but none of them is the first.
bool ends_process() {
  return serves_program() && threads::is_last() && raw::call(SYS_gettid) == raw::call(SYS_getpid);
}

long as_libc(long result) {
  if (!raw::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// In signal mode the kernel serves no fault on what the arguments point at, be it the word of a futex, of which the
// C++ library's waiting on atomics is made. How much it would use is not known here: what lies within a page is
// there.
long held_call(long number, long a, long b, long c, long d, long e, long f) {
  auto held = [](long argument) { return HeldForCall(reinterpret_cast<const void*>(argument), kPageSize); };
  HeldForCall first = held(a), second = held(b), third = held(c), fourth = held(d), fifth = held(e), sixth = held(f);
  return as_libc(raw::call(number, a, b, c, d, e, f));
}

}  // namespace

extern "C" {
__attribute__((used, visibility("hidden"))) bool hinterland_notices_all = false;
}

namespace hinterland::forking {
// The handler of a crash calls clone, and it may be the loader that crashed.
void prepare() {
  g_next_clone.resolve();
  hinterland_notices_all = pager().faults_by_signal();
}
}  // namespace hinterland::forking

// No code of its own: where the flags say so the child begins on another stack, in libc's function.
HL_INTERPOSED int clone(Entry* entry, void* stack, int flags, void* argument, ...) noexcept {
  va_list more;
  va_start(more, argument);
  auto* parent_id = va_arg(more, int*);
  auto* block = va_arg(more, void*);
  auto* child_id = va_arg(more, int*);
  va_end(more);
  return do_clone(entry, stack, flags, argument, parent_id, block, child_id);
}
HL_INTERPOSED int __clone(Entry* entry, void* stack, int flags, void* argument, ...) noexcept
    __attribute__((alias("clone")));

// The calls that syscall() below does not make itself.
extern "C" __attribute__((used)) long hinterland_noticed_call(long number, long a, long b, long c, long d, long e,
                                                              long f) {
  // Hints rely on there being no handlers until we say so. (Not read: the pointer may be wrong, which is EFAULT.)
  if (number == SYS_rt_sigaction && b != 0) signal_handlers::expect(static_cast<int>(a));
  if (number == SYS_exit_group || (number == SYS_exit && ends_process())) _exit(static_cast<int>(a));
  if (!serves_program()) return as_libc(raw::call(number, a, b, c, d, e, f));
  if (number == SYS_fork) return forking::fork_plain();
  if (number == SYS_clone && copies(static_cast<std::uint64_t>(a)))
    return Copying(static_cast<std::uint64_t>(a), reinterpret_cast<int*>(c), reinterpret_cast<int*>(d)).make();
  const auto* arguments = reinterpret_cast<const clone_args*>(a);
  if (number == SYS_clone3 && copies(arguments->flags)) return Copying(arguments, static_cast<std::size_t>(b)).make();
  return held_call(number, a, b, c, d, e, f);
}

extern "C" __attribute__((used)) long hinterland_failed_call(long result) { return as_libc(result); }

// As libc's, in so far as a call that makes a thread comes back on the stack that was given for it, without a frame
// of ours there. Only what may copy or end the process, or install a signal handler is looked at:
// - exit, exit_group, fork, rt_sigaction: always
// - clone, unless it shares the memory (CLONE_VM, 0x100) or gives a stack
// - clone3, the same (clone_args: flags at 0, stack at 40), if its size is one that we know (64 to 88 bytes)
// - in signal mode all others, but for vfork
// Without the parameters that <unistd.h> declares: not optimised, GCC saves those of "..." in a frame that is not
// there.
extern "C" __attribute__((visibility("default"))) void hinterland_syscall() __asm__("syscall");
__attribute__((naked)) void hinterland_syscall() {
  __asm__(
      "cmp $60, %rdi\n\t"
      "je 3f\n\t"
      "cmp $231, %rdi\n\t"
      "je 3f\n\t"
      "cmp $57, %rdi\n\t"
      "je 3f\n\t"
      "cmp $13, %rdi\n\t"
      "je 3f\n\t"
      "cmp $56, %rdi\n\t"
      "je 1f\n\t"
      "cmp $435, %rdi\n\t"
      "je 2f\n\t"
      "cmp $58, %rdi\n\t"
      "je 0f\n\t"
      "cmpb $0, hinterland_notices_all(%rip)\n\t"
      "jne 3f\n"
      "0:\n\t"
      "mov %rdi, %rax\n\t"
      "mov %rsi, %rdi\n\t"
      "mov %rdx, %rsi\n\t"
      "mov %rcx, %rdx\n\t"
      "mov %r8, %r10\n\t"
      "mov %r9, %r8\n\t"
      "mov 8(%rsp), %r9\n\t"
      "syscall\n\t"
      "cmp $-4095, %rax\n\t"
      "jae 4f\n\t"
      "ret\n"
      "1:\n\t"
      "test $0x100, %esi\n\t"
      "jnz 0b\n\t"
      "test %rdx, %rdx\n\t"
      "jnz 0b\n\t"
      "jmp 3f\n"
      "2:\n\t"
      "test %rsi, %rsi\n\t"
      "jz 0b\n\t"
      "cmp $64, %rdx\n\t"
      "jb 0b\n\t"
      "cmp $88, %rdx\n\t"
      "ja 0b\n\t"
      "testl $0x100, (%rsi)\n\t"
      "jnz 0b\n\t"
      "cmpq $0, 40(%rsi)\n\t"
      "jne 0b\n"
      "3:\n\t"
      "jmp hinterland_noticed_call\n"
      "4:\n\t"
      "mov %rax, %rdi\n\t"
      "jmp hinterland_failed_call");
}

static_assert(SYS_exit == 60 && SYS_exit_group == 231 && SYS_fork == 57 && SYS_clone == 56 && SYS_clone3 == 435 &&
              SYS_rt_sigaction == 13 && SYS_vfork == 58);
static_assert(CLONE_VM == 0x100 && offsetof(clone_args, flags) == 0 && offsetof(clone_args, stack) == 40);
static_assert(sizeof(clone_args) == CLONE_ARGS_SIZE_VER2 && CLONE_ARGS_SIZE_VER0 == 64 && CLONE_ARGS_SIZE_VER2 == 88);
