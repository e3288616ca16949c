#include "preload/catching_clone.hpp"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>

extern "C" {
std::uintptr_t hinterland_clone_range[2] = {};
std::uintptr_t hinterland_clone_gate = 0;

// Where a child begins: at the top of its stack lie what the call's first two registers were, and where the caught
// call was made. It asks the kernel to catch its calls (157 is prctl, 59 PR_SET_SYSCALL_USER_DISPATCH), with all
// registers kept, and goes there.
void hinterland_child_begins() __attribute__((visibility("hidden")));
__attribute__((naked, used)) void hinterland_child_begins() {
  __asm__(
      "push %rdx\n\t"
      "push %r10\n\t"
      "push %r8\n\t"
      "mov $157, %eax\n\t"
      "mov $59, %edi\n\t"
      "mov $1, %esi\n\t"
      "mov hinterland_clone_range(%rip), %rdx\n\t"
      "mov hinterland_clone_range+8(%rip), %r10\n\t"
      "xor %r8d, %r8d\n\t"
      "call *hinterland_clone_gate(%rip)\n\t"
      "pop %r8\n\t"
      "pop %r10\n\t"
      "pop %rdx\n\t"
      "pop %rdi\n\t"
      "pop %rsi\n\t"
      "xor %eax, %eax\n\t"
      "ret");
}

// The call with all registers as they were, but for the first two. (Of greg_t: R8, R9, R10, -, R12 to R15, RDI, RSI,
// RBP, RBX, RDX, RAX.)
long hinterland_clone_with(const greg_t* registers, long first, long second) __attribute__((visibility("hidden")));
__attribute__((naked, used)) long hinterland_clone_with(const greg_t* /*registers*/, long /*first*/,
                                                        long /*second*/) {
  __asm__(
      "push %rbx\n\t"
      "push %rbp\n\t"
      "push %r12\n\t"
      "push %r13\n\t"
      "push %r14\n\t"
      "push %r15\n\t"
      "mov %rdi, %r11\n\t"
      "mov %rsi, %rdi\n\t"
      "mov %rdx, %rsi\n\t"
      "mov (%r11), %r8\n\t"
      "mov 8(%r11), %r9\n\t"
      "mov 16(%r11), %r10\n\t"
      "mov 32(%r11), %r12\n\t"
      "mov 40(%r11), %r13\n\t"
      "mov 48(%r11), %r14\n\t"
      "mov 56(%r11), %r15\n\t"
      "mov 80(%r11), %rbp\n\t"
      "mov 88(%r11), %rbx\n\t"
      "mov 96(%r11), %rdx\n\t"
      "mov 104(%r11), %rax\n\t"
      "call *hinterland_clone_gate(%rip)\n\t"
      "pop %r15\n\t"
      "pop %r14\n\t"
      "pop %r13\n\t"
      "pop %r12\n\t"
      "pop %rbp\n\t"
      "pop %rbx\n\t"
      "ret");
}

__attribute__((naked)) void hinterland_return_from_handler(greg_t /*stack*/) {
  __asm__(
      "mov %rdi, %rsp\n\t"
      "mov $15, %eax\n\t"
      "jmp *hinterland_clone_gate(%rip)");
}
}

static_assert(REG_R8 == 0 && REG_R12 == 4 && REG_R15 == 7 && REG_RDI == 8 && REG_RBP == 10 && REG_RBX == 11 &&
              REG_RDX == 12 && REG_RAX == 13 && SYS_prctl == 157 && SYS_rt_sigreturn == 15);

namespace {

// Four words at the top of the child's stack, and how many bytes of it they take.
constexpr std::uintptr_t kWords = 4 * sizeof(long);
void put_words(std::uintptr_t top, const greg_t* registers) {
  std::array<long, 4> words = {reinterpret_cast<long>(&hinterland_child_begins), registers[REG_RDI],
                               registers[REG_RSI], registers[REG_RIP]};
  std::memcpy(reinterpret_cast<void*>(top - kWords), words.data(), kWords);
}

}  // namespace

extern "C" long hinterland_clone_elsewhere(const greg_t* registers) {
  auto top = static_cast<std::uintptr_t>(registers[REG_RSI]);
  put_words(top, registers);
  return hinterland_clone_with(registers, registers[REG_RDI], static_cast<long>(top - kWords));
}

extern "C" long hinterland_clone3_elsewhere(const greg_t* registers) {
  clone_args arguments{};
  auto size = static_cast<std::size_t>(registers[REG_RSI]);
  std::memcpy(&arguments, reinterpret_cast<const void*>(registers[REG_RDI]), size);
  put_words(arguments.stack + arguments.stack_size, registers);
  arguments.stack_size -= kWords;
  return hinterland_clone_with(registers, reinterpret_cast<long>(&arguments), static_cast<long>(size));
}
