#include "preload/catching.hpp"

#include <elf.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/options.hpp"
#include "preload/catching_32_bit.hpp"
#include "preload/catching_clone.hpp"
#include "preload/copying.hpp"
#include "preload/forking.hpp"
#include "preload/held_for_call.hpp"
#include "preload/libc_code.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/system_calls.hpp"
#include "preload/trap_signal.hpp"
#include "preload/uninterrupted.hpp"
#include "signal/self_paging.hpp"

extern "C" {
// Where hinterland_syscall() goes with what it does not look at, under --catch; else 0.
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_libc_syscall = 0;
__attribute__((visibility("hidden"))) extern bool hinterland_notices_all;
}

namespace hinterland::catching {
namespace {

// Interface facts that Debian's headers may lack.
constexpr int kSetDispatch = 59, kDispatchOff = 0, kDispatchOn = 1;
constexpr int kCaughtCode = 2;  // SYS_USER_DISPATCH

struct Range {
  std::uintptr_t base = 0, bytes = 0;
  bool contains(std::uintptr_t address) const { return address - base < bytes; }
};

bool g_on = false;  // changes once, in the constructor
libc_code::Places g_libc;
std::array<Range, 4>
    g_passing;  // the loader, the kernel's vDSO, and this library and its companion: not the program's

constexpr std::size_t kObjectMax = std::size_t{1} << 20;  // the vDSO has no size that could be asked for

int look_for_companions(dl_phdr_info* object, std::size_t, void*) {
  auto ours = reinterpret_cast<std::uintptr_t>(&is_wanted);
  auto companion = reinterpret_cast<std::uintptr_t>(&hl_signal_library);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    Range range{object->dlpi_addr + segment.p_vaddr, segment.p_memsz};
    std::size_t end = segment.p_vaddr + segment.p_memsz;
    if (range.contains(ours)) g_passing[2] = {object->dlpi_addr, end};
    if (companion != 0 && range.contains(companion)) g_passing[3] = {object->dlpi_addr, end + kObjectMax};
    if (range.contains(getauxval(AT_BASE))) g_passing[0] = {object->dlpi_addr, kObjectMax};
  }
  return 0;
}

bool passes(std::uintptr_t instruction) {
  for (const Range& range : g_passing)
    if (range.contains(instruction)) return true;
  return false;
}

long dispatch(int operation) {
  if (operation == kDispatchOff) return raw::call(SYS_prctl, kSetDispatch, kDispatchOff);
  return raw::call(SYS_prctl, kSetDispatch, kDispatchOn, static_cast<long>(g_libc.base),
                   static_cast<long>(g_libc.bytes));
}

long as_kernel(long result) { return result == -1 ? -errno : result; }

// What the handler's end would undo is changed where that takes it from.
long change_mask(ucontext_t& context, long how, long set, long before, long set_bytes) {
  if (set_bytes != sizeof(std::uint64_t)) return -EINVAL;
  if (set != 0 && (how < SIG_BLOCK || how > SIG_SETMASK)) return -EINVAL;
  std::uint64_t mask, wanted = 0;
  std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
  if (set != 0) std::memcpy(&wanted, reinterpret_cast<const void*>(set), sizeof wanted);
  const std::uint64_t was =
      mask | trap_signal::hide(trap_signal::hidden_signals(), static_cast<int>(how), set != 0 ? &wanted : nullptr);
  if (set != 0) mask = how == SIG_BLOCK ? mask | wanted : how == SIG_UNBLOCK ? mask & ~wanted : wanted;
  std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
  if (before != 0) std::memcpy(reinterpret_cast<void*>(before), &was, sizeof was);
  return 0;
}

// On a stack of our own, because the kernel refuses to change the alternate one under who stands on it. By signal,
// the program's is not the kernel's: libc's function knows.
long change_alternate_stack(ucontext_t& context, long wanted, long before) {
  stack_t given{}, found{};
  if (wanted != 0) std::memcpy(&given, reinterpret_cast<const void*>(wanted), sizeof given);
  const auto pointer = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  long result = uninterrupted([pointer, wanted, &given, &found, &context]() -> long {
    if (sigaltstack(nullptr, &found) != 0) return -errno;
    found.ss_flags &= ~SS_ONSTACK;
    const bool stands_on_it = (found.ss_flags & SS_DISABLE) == 0 &&
                              pointer - reinterpret_cast<std::uintptr_t>(found.ss_sp) <= found.ss_size;
    if (stands_on_it) found.ss_flags |= SS_ONSTACK;
    if (wanted == 0) return 0;
    if (stands_on_it) return -EPERM;
    if (sigaltstack(&given, nullptr) != 0) return -errno;
    return raw::call(SYS_sigaltstack, 0, raw::word_of(&context.uc_stack));
  });
  if (result == 0 && before != 0) std::memcpy(reinterpret_cast<void*>(before), &found, sizeof found);
  return result;
}

// A child that shares the memory and goes on with its parent's stack would overwrite the frame that its parent
// returns by. It gets a copy of the memory instead.
long make_child(const greg_t* registers, long number, long flags_or_arguments) {
  if (number == SYS_vfork) return as_kernel(forking::fork_plain());
  if (number == SYS_clone) {
    auto flags = static_cast<std::uint64_t>(flags_or_arguments);
    if (registers[REG_RSI] != 0) return hinterland_clone_elsewhere(registers);
    if ((flags & CLONE_VM) != 0) return as_kernel(forking::fork_plain());
  }
  const auto* arguments = reinterpret_cast<const clone_args*>(flags_or_arguments);
  if (number == SYS_clone3) {
    auto size = static_cast<std::size_t>(registers[REG_RSI]);
    if (size < CLONE_ARGS_SIZE_VER0 || size > CLONE_ARGS_SIZE_VER2) return -EINVAL;
    if (arguments->stack != 0) return hinterland_clone3_elsewhere(registers);
    if ((arguments->flags & CLONE_VM) != 0) return as_kernel(forking::fork_plain());
  }
  return as_kernel(hinterland_noticed_call(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                           registers[REG_R10], registers[REG_R8], registers[REG_R9]));
}

long make_call(ucontext_t& context, std::uintptr_t instruction) {
  const greg_t* r = context.uc_mcontext.gregs;
  const long number = r[REG_RAX], a = r[REG_RDI], b = r[REG_RSI], c = r[REG_RDX], d = r[REG_R10], e = r[REG_R8],
             f = r[REG_R9];
  if (passes(instruction)) return raw::call(number, a, b, c, d, e, f);
  switch (number) {
    case SYS_rt_sigreturn:
      hinterland_return_from_handler(r[REG_RSP]);
    case SYS_rt_sigprocmask: {
      HeldForCall set(reinterpret_cast<const void*>(b), 8), before(reinterpret_cast<const void*>(c), 8);
      return change_mask(context, a, b, c, d);
    }
    case SYS_sigaltstack:
      return change_alternate_stack(context, a, b);
    case SYS_clone:
    case SYS_clone3:
    case SYS_vfork:
      return make_child(r, number, a);
    default:
      return as_kernel(hinterland_noticed_call(number, a, b, c, d, e, f));
  }
}

void on_trap(int, siginfo_t* info, void* pointer) {
  auto& context = *static_cast<ucontext_t*>(pointer);
  int saved_errno = errno;
  if (info->si_code == kCaughtCode && info->si_arch == AUDIT_ARCH_I386)
    context.uc_mcontext.gregs[REG_RAX] = make_call_of_32_bits(context.uc_mcontext.gregs);
  else if (info->si_code == kCaughtCode)
    context.uc_mcontext.gregs[REG_RAX] = make_call(context, reinterpret_cast<std::uintptr_t>(info->si_call_addr));
  else
    trap_signal::pass_on(info, &context);
  errno = saved_errno;
}

}  // namespace

bool is_wanted() {
  const char* value = std::getenv(variable_name(option(OptionId::catch_calls)).c_str());
  return value != nullptr && value[0] != '\0' && std::strcmp(value, "0") != 0;
}

bool prepare() {
  g_libc = libc_code::find();
  if (!g_libc.complete()) return false;
  raw::g_gate = g_libc.gate;
  raw::g_handler_end = g_libc.handler_end;
  if (&hl_make_calls_at != nullptr) hl_make_calls_at(g_libc.gate, g_libc.handler_end);
  hinterland_clone_range[0] = g_libc.base;
  hinterland_clone_range[1] = g_libc.bytes;
  hinterland_clone_gate = g_libc.gate;
  return true;
}

int start() {
  dl_iterate_phdr(look_for_companions, nullptr);
  g_passing[1] = {getauxval(AT_SYSINFO_EHDR), 2 * kPageSize};
  if (int problem = trap_signal::install(on_trap); problem != 0) return problem;
  hinterland_libc_syscall = g_libc.function;
  hinterland_notices_all = true;
  g_on = true;
  return static_cast<int>(dispatch(kDispatchOn));
}

bool is_on() { return g_on; }

void begin_in_thread() {
  if (g_on) dispatch(kDispatchOn);
}

Paused::Paused() {
  if (g_on) dispatch(kDispatchOff);
}
Paused::~Paused() { begin_in_thread(); }

}  // namespace hinterland::catching
