// Children by other calls than fork: clone() of libc, and clone and clone3 through syscall(2)
// (interpose_syscall.cpp). Where they copy the memory (no CLONE_VM) they go the way of fork, so that the child has
// its far memory; all others pass.
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
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "preload/copying.hpp"
#include "preload/forking.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace {

using namespace hinterland;

constexpr std::uint64_t kOurs = CLONE_VM | CLONE_FILES | CLONE_SETTLS;  // with one of these the call passes
constexpr std::size_t kNamespacesMax = 32;                              // the kernel's MAX_PID_NS_LEVEL

bool copies(std::uint64_t flags) { return (flags & kOurs) == 0; }

// One such call. Far memory stands still while the kernel does it, so that it may meet none: what it reads lies here,
// on a stack of our own, and what it would write is written here, and handed over afterwards.
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

// The caller's stack may be far.
template <typename... Arguments>
pid_t copy(Arguments... arguments) {
  SignalsBlocked blocked(SignalsBlocked::all());
  return on_own_stack([=] { return Copying(arguments...).make(); });
}

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
  pid_t child = copy(std::uint64_t{bits}, parent_id, child_id);
  if (child == 0) run_on(stack, entry, argument);
  return child;
}

}  // namespace

namespace hinterland::forking {
// The handler of a crash calls clone, and it may be the loader that crashed.
void resolve_clone() { g_next_clone.resolve(); }

bool copies_memory(std::uint64_t flags) { return copies(flags); }
pid_t fork_by_clone(std::uint64_t flags, int* parent_id, int* child_id) { return copy(flags, parent_id, child_id); }
pid_t fork_by_clone3(const clone_args* arguments, std::size_t size) { return copy(arguments, size); }

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

static_assert(sizeof(clone_args) == CLONE_ARGS_SIZE_VER2);
