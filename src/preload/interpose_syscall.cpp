// syscall(2): what concerns far memory or the runtime's descriptors goes the way of the function of the same name.
// Which calls those are says one table (system_calls.inc).
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/signal_handlers.hpp"
#include "base/signal_mask.hpp"
#include "paging/program_end.hpp"
#include "preload/copying.hpp"
#include "preload/descriptor_guards.hpp"
#include "preload/descriptors.hpp"
#include "preload/forking.hpp"
#include "preload/limits.hpp"
#include "preload/mappings.hpp"
#include "preload/program_break.hpp"
#include "preload/raw.hpp"
#include "preload/seccomp.hpp"
#include "preload/state.hpp"
#include "preload/system_calls.hpp"
#include "preload/threads.hpp"
#include "preload/trap_signal.hpp"
#include "signal/self_paging.hpp"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

extern "C" {
ssize_t process_madvise(int process, const struct iovec* ranges, std::size_t count, int advice, unsigned flags);
}

namespace {

using namespace hinterland;
using system_calls::Kind;
using system_calls::Notice;

// With the program's last thread its process ends: the runtime's threads would go on, and keep it. Threads that were
// made by clone are not counted without /proc, but none of them is the first.
bool ends_process() {
  if (!serves_program() || seccomp::is_strict() || seccomp::is_filtered()) return false;
  int living = program_end::living_threads();
  if (living >= 0) return living == 1;
  return threads::is_last() && raw::call(SYS_gettid) == raw::call(SYS_getpid);
}

long as_libc(long result) {
  if (!raw::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// In signal mode the kernel serves no fault on what the arguments lead to, be it the word of a futex, of which the
// C++ library's waiting on atomics is made. And what a call pins may have to be held.
// Not inlined: called last, it needs no frame of its caller's, on what may be a small stack.
__attribute__((noinline)) long held_call(long number, long a, long b, long c, long d, long e, long f) {
  const long all[] = {a, b, c, d, e, f};
  const bool holds =
      mode() == Mode::far && (pager().faults_by_signal() || !pager().sees_pins()) && &hl_held_system_call != nullptr;
  return as_libc(holds ? hl_held_system_call(number, all)
                       : raw::call(number, all[0], all[1], all[2], all[3], all[4], all[5]));
}

void* at(long address) { return reinterpret_cast<void*>(address); }
std::size_t bytes(long length) { return static_cast<std::size_t>(length); }
long result_of(void* address) { return reinterpret_cast<long>(address); }

// The functions are this library's own, and do what the program's calls of them would.
long memory_call(long number, long a, long b, long c, long d, long e, long f) {
  switch (number) {
    case SYS_mmap:
      return result_of(mmap(at(a), bytes(b), static_cast<int>(c), static_cast<int>(d), static_cast<int>(e), f));
    case SYS_munmap:
      return munmap(at(a), bytes(b));
    case SYS_mprotect:
      return mprotect(at(a), bytes(b), static_cast<int>(c));
    case SYS_pkey_mprotect:
      return pkey_mprotect(at(a), bytes(b), static_cast<int>(c), static_cast<int>(d));
    case SYS_mremap:
      return result_of(mremap(at(a), bytes(b), bytes(c), static_cast<int>(d), at(e)));
    case SYS_madvise:
      return madvise(at(a), bytes(b), static_cast<int>(c));
    case SYS_process_madvise:
      return process_madvise(static_cast<int>(a), static_cast<const iovec*>(at(b)), bytes(c), static_cast<int>(d),
                             static_cast<unsigned>(e));
    case SYS_mincore:
      return mincore(at(a), bytes(b), static_cast<unsigned char*>(at(c)));
    case SYS_mlock:
      return mlock(at(a), bytes(b));
    case SYS_mlock2:
      return mlock2(at(a), bytes(b), static_cast<unsigned>(c));
    case SYS_munlock:
      return munlock(at(a), bytes(b));
    case SYS_mlockall:
      return mlockall(static_cast<int>(a));
    case SYS_munlockall:
      return munlockall();
    case SYS_msync:
      return msync(at(a), bytes(b), static_cast<int>(c));
    case SYS_brk:  // which says where it is, moved or not
      if (static_cast<std::uintptr_t>(a) != program_break::now()) program_break::move(static_cast<std::uintptr_t>(a));
      return static_cast<long>(program_break::now());
    case SYS_shmat:
      return result_of(shmat(static_cast<int>(a), at(b), static_cast<int>(c)));
    default:
      return held_call(number, a, b, c, d, e, f);
  }
}

// To the program, the runtime's descriptors are not open.
long table_call(long number, long a, long b, long c, long d, long e, long f) {
  if (number == SYS_close_range)
    return close_range(static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<int>(c));
  bool names_two = number == SYS_dup2 || number == SYS_dup3;
  if (descriptors::is_protected(static_cast<int>(a)) || (names_two && descriptors::is_protected(static_cast<int>(b))))
    return as_libc(-EBADF);
  return held_call(number, a, b, c, d, e, f);
}

long limits_call(long number, long a, long b, long c, long d) {
  auto set = [](long limit) { return static_cast<const struct rlimit*>(at(limit)); };
  auto said = [](long limit) { return static_cast<struct rlimit*>(at(limit)); };
  if (number == SYS_prlimit64)
    return as_libc(limits::change(static_cast<int>(a), static_cast<int>(b), set(c), said(d)));
  // The kernel takes no null pointer here, and has no other use for one.
  if (b == 0) return as_libc(-EFAULT);
  bool sets = number == SYS_setrlimit;
  return as_libc(limits::change(0, static_cast<int>(a), sets ? set(b) : nullptr, sets ? nullptr : said(b)));
}

constexpr auto kNotices = system_calls::notices(SYS_clone, SYS_clone3);

}  // namespace

extern "C" {
__attribute__((used, visibility("hidden"))) bool hinterland_notices_all = false;
__attribute__((used, visibility("hidden"))) extern const std::array<Notice, system_calls::kNumbers>
    hinterland_call_notices;
const std::array<Notice, system_calls::kNumbers> hinterland_call_notices = kNotices;
}

namespace hinterland::forking {
void prepare() {
  resolve_clone();
  hinterland_notices_all = pager().faults_by_signal() || !pager().sees_pins();
}
}  // namespace hinterland::forking

// The calls that syscall() below does not make itself.
extern "C" __attribute__((used)) long hinterland_noticed_call(long number, long a, long b, long c, long d, long e,
                                                              long f) {
  // Hints rely on there being no handlers until we say so. (Not read: the pointer may be wrong, which is EFAULT.)
  if (number == SYS_rt_sigaction && b != 0) signal_handlers::expect(static_cast<int>(a));
  if (number == SYS_rt_sigaction && trap_signal::hidden_signals() != 0)
    return as_libc(trap_signal::change_action_by_call(static_cast<int>(a), at(b), at(c), bytes(d)));
  if (number == SYS_rt_sigprocmask && trap_signal::hidden_signals() != 0)
    return as_libc(trap_signal::change_mask_by_call(static_cast<int>(a), at(b), at(c), bytes(d)));
  if (number == SYS_exit_group || (number == SYS_exit && ends_process())) _exit(static_cast<int>(a));
  if (!serves_program()) return as_libc(raw::call(number, a, b, c, d, e, f));
  if (descriptor_guards::refuses_call(number, a, b, c, e)) return -1;
  if (number == SYS_pidfd_getfd)
    return as_libc(
        descriptor_guards::copy_of_descriptor(static_cast<int>(a), static_cast<int>(b), static_cast<unsigned>(c)));
  if (number == SYS_fork) return forking::fork_plain();
  if (number == SYS_clone && forking::copies_memory(static_cast<std::uint64_t>(a)))
    return forking::fork_by_clone(static_cast<std::uint64_t>(a), static_cast<int*>(at(c)), static_cast<int*>(at(d)));
  const auto* arguments = static_cast<const clone_args*>(at(a));
  if (number == SYS_clone3 && forking::copies_memory(arguments->flags))
    return forking::fork_by_clone3(arguments, bytes(b));
  if (number == SYS_prctl) return prctl(static_cast<int>(a), b, c, d, e);
  if (system_calls::is_of(Kind::limits, number)) return limits_call(number, a, b, c, d);
  if (number == SYS_seccomp) return seccomp::call(a, b, c);
  if (system_calls::is_of(Kind::memory, number)) return memory_call(number, a, b, c, d, e, f);
  if (system_calls::is_of(Kind::table, number)) return table_call(number, a, b, c, d, e, f);
  if (number == SYS_mseal && pager().overlaps(static_cast<std::uintptr_t>(a), bytes(b))) return as_libc(-EPERM);
  return held_call(number, a, b, c, d, e, f);
}

extern "C" __attribute__((used)) long hinterland_failed_call(long result) { return as_libc(result); }

// As libc's, in so far as a call that makes a thread comes back on the stack that was given for it, without a frame
// of ours there. Looked at is what the table says (Notice), but
// - clone not if it shares the memory (CLONE_VM, 0x100) or gives a stack
// - clone3 the same (clone_args: flags at 0, stack at 40), if its size is one that we know (64 to 88 bytes)
// Without the parameters that <unistd.h> declares: not optimised, GCC saves those of "..." in a frame that is not
// there.
extern "C" __attribute__((visibility("default"))) void hinterland_syscall() __asm__("syscall");
__attribute__((naked)) void hinterland_syscall() {
  __asm__(
      "cmp $512, %rdi\n\t"
      "jae 0f\n\t"
      "lea hinterland_call_notices(%rip), %rax\n\t"
      "movzbl (%rax,%rdi), %eax\n\t"
      "test %eax, %eax\n\t"
      "je 0f\n\t"
      "cmp $2, %eax\n\t"
      "je 3f\n\t"
      "cmp $3, %eax\n\t"
      "je 1f\n\t"
      "ja 2f\n\t"
      "cmpb $0, hinterland_notices_all(%rip)\n\t"
      "jne 3f\n"
      "0:\n\t"
      "cmpq $0, hinterland_libc_syscall(%rip)\n\t"
      "jne 5f\n\t"
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
      "jmp hinterland_failed_call\n"
      "5:\n\t"
      "jmp *hinterland_libc_syscall(%rip)");
}

static_assert(static_cast<int>(Notice::passes) == 0 && static_cast<int>(Notice::always) == 2 &&
              static_cast<int>(Notice::clone) == 3 && static_cast<int>(Notice::clone3) == 4);
static_assert(kNotices[SYS_exit] == Notice::always && kNotices[SYS_seccomp] == Notice::always &&
              kNotices[SYS_prctl] == Notice::always && kNotices[SYS_rt_sigaction] == Notice::always &&
              kNotices[SYS_vfork] == Notice::passes && system_calls::kNumbers == 512);
static_assert(CLONE_VM == 0x100 && offsetof(clone_args, flags) == 0 && offsetof(clone_args, stack) == 40);
static_assert(CLONE_ARGS_SIZE_VER0 == 64 && CLONE_ARGS_SIZE_VER2 == 88);
