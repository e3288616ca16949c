#include "fiber/fault_parking.hpp"

#include <cpuid.h>
#include <dlfcn.h>
#include <ucontext.h>

#include <cerrno>
#include <cstring>

#include "fiber/objects.hpp"
#include "fiber/scheduler.hpp"
#include "hinterland/hint.h"

namespace hinterland::fiber {
namespace {

constexpr std::uintptr_t kPage = 4096;
// What the trampoline, the registers and leaving the fiber take, several times over.
constexpr std::uintptr_t kRoom = 8192;
// Below the stack pointer functions may use so much without saying (the ABI's red zone).
constexpr std::uintptr_t kRedZone = 128;

// What the trampoline keeps of the extended registers: x87, SSE, AVX, the three of AVX-512, APX. Not PKRU, which is
// the thread's, nor AMX's tiles, whose 8 KiB would not fit into small stacks; both are said to be lost.
#define HL_KEPT_REGISTERS "0x800e7"
constexpr std::uint32_t kKept = 0x800e7;
#define HL_KEPT_BYTES "2752"
constexpr std::uint32_t kKeptBytes = 2752;  // Intel's and AMD's layouts end at 2688 and before

// errno's address is a constant to the compiler, but after a switch it is another thread's.
__attribute__((noinline)) int errno_of_this_thread() {
  asm volatile("" ::: "memory");
  return errno;
}
__attribute__((noinline)) void set_errno_of_this_thread(int value) {
  asm volatile("" ::: "memory");
  errno = value;
}

}  // namespace

// The trampoline calls it by this name.
extern "C" __attribute__((visibility("hidden"), used)) void hl_fiber_leave_for_fault() {
  int kept = errno_of_this_thread();
  leave(Leaving::hints);
  set_errno_of_this_thread(kept);
}

// Entered by a jump, with the address of the instruction that faulted on top of the stack, below the red zone. The
// called function keeps rbx and r12 to r15. `ret` takes the address and steps over the red zone.
extern "C" __attribute__((naked, visibility("hidden"))) void hl_fiber_fault_trampoline() {
  __asm__(
      ".cfi_signal_frame\n\t"
      ".cfi_def_cfa rsp, 136\n\t"
      ".cfi_offset rip, -136\n\t"
      "pushfq\n\t"
      ".cfi_def_cfa_offset 144\n\t"
      "push %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\t"
      "push %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\tpush %rbp\n\t"
      ".cfi_def_cfa_offset 224\n\t"
      ".cfi_offset rbp, -224\n\t"
      "mov %rsp, %rbp\n\t"
      ".cfi_def_cfa_register rbp\n\t"
      "cld\n\t"
      "sub $" HL_KEPT_BYTES
      ", %rsp\n\t"
      "and $-64, %rsp\n\t"
      "xor %eax, %eax\n\t"  // xsave wants its header, of 64 bytes, to be zero
      "lea 512(%rsp), %rdi\n\t"
      "mov $8, %ecx\n\t"
      "rep stosq\n\t"
      "mov $" HL_KEPT_REGISTERS
      ", %eax\n\t"
      "xor %edx, %edx\n\t"
      "xsave64 (%rsp)\n\t"
      "call hl_fiber_leave_for_fault\n\t"
      "mov $" HL_KEPT_REGISTERS
      ", %eax\n\t"
      "xor %edx, %edx\n\t"
      "xrstor64 (%rsp)\n\t"
      "mov %rbp, %rsp\n\t"
      ".cfi_def_cfa_register rsp\n\t"
      "pop %rbp\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\t"
      "pop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\t"
      ".cfi_restore rbp\n\t"
      ".cfi_def_cfa_offset 144\n\t"
      "popfq\n\t"
      ".cfi_def_cfa_offset 136\n\t"
      "ret $128");
}

namespace {

bool registers_can_be_kept() {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  for (std::uint32_t component = 2; component < 32; ++component) {
    if ((low & kKept & (1u << component)) == 0) continue;
    // Leaf 13: a component's size and its offset.
    if (__get_cpuid_count(13, component, &a, &b, &c, &d) == 0 || b + a > kKeptBytes) return false;
  }
  return true;
}

// In the midst of a handler of the program's a fiber must not leave: its frame is this thread's.
bool is_in_handler(const Worker& worker, const ucontext_t& context) {
  return std::memcmp(&context.uc_sigmask, &worker.signal_mask, sizeof worker.signal_mask) != 0;
}

bool is_on_stack(const Fiber& fiber, std::uintptr_t address) {
  return address >= reinterpret_cast<std::uintptr_t>(fiber.stack.low) &&
         address < reinterpret_cast<std::uintptr_t>(fiber.stack.top);
}

bool may_park(const Fiber& fiber, const ucontext_t& context) {
  auto code = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  auto stack = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  return code >= fiber.faults.code_low && code < fiber.faults.code_high && fiber.scheduler->hints_park() &&
         is_on_stack(fiber, stack) && is_on_stack(fiber, stack - kRoom);
}

}  // namespace

bool can_park_on_faults() {
  static const bool can = registers_can_be_kept();
  return can;
}

int park_on_fault(std::uintptr_t address, int write, void* context) {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  Worker* worker = current_worker();
  Fiber* fiber = worker != nullptr ? worker->current : nullptr;
  if (fiber == nullptr || is_in_undivided_step(worker->slot) || !may_park(*fiber, interrupted)) return 0;
  if (is_in_handler(*worker, interrupted)) return 0;
  // Without an alternate stack the kernel's frame lies right below the red zone, where the address is about to go.
  if (is_on_stack(*fiber, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return 0;
  std::uintptr_t page = address / kPage * kPage;
  if (fiber->faults.last_page == page) {
    fiber->faults.last_page = 0;
    return 0;
  }
  fiber->faults.last_page = page;
  fiber->hint = {reinterpret_cast<const void*>(page), 1, 0, write != 0 ? HL_HINT_WRITE : 0};
  auto& registers = interrupted.uc_mcontext.gregs;
  registers[REG_RSP] -= static_cast<greg_t>(kRedZone + sizeof(greg_t));
  *reinterpret_cast<greg_t*>(registers[REG_RSP]) = registers[REG_RIP];
  registers[REG_RIP] = reinterpret_cast<greg_t>(&hl_fiber_fault_trampoline);
  return 1;
}

}  // namespace hinterland::fiber

namespace hl::fibers {

// Not inlined: who calls is who declares it.
__attribute__((noinline)) faults_may_park::faults_may_park() noexcept : fiber_(hinterland::fiber::current_fiber()) {
  if (fiber_ == nullptr) return;
  hinterland::fiber::FaultParking& faults = fiber_->faults;
  outer_low_ = faults.code_low;
  outer_high_ = faults.code_high;
  dl_find_object object;
  if (_dl_find_object(__builtin_return_address(0), &object) != 0) return;
  faults.code_low = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
  faults.code_high = reinterpret_cast<std::uintptr_t>(object.dlfo_map_end);
}

faults_may_park::~faults_may_park() {
  if (fiber_ == nullptr) return;
  fiber_->faults.code_low = outer_low_;
  fiber_->faults.code_high = outer_high_;
}

}  // namespace hl::fibers
