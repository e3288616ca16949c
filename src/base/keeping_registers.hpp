// Entries for code in which a compiler left no room for a call: they keep every register but the flags, so that a
// call of the runtime costs the program none of its registers.
#pragma once

namespace hinterland {

// Finds out how vector registers are kept on this processor. Before the first of these entries is called; any thread.
void prepare_to_keep_registers();

}  // namespace hinterland

// 2 xsavec, 1 xsave, 0 fxsave.
extern "C" __attribute__((visibility("hidden"))) unsigned char hl_save_how;

// Defines `name_`, which keeps what a C function may change, and calls function_(r11, where it returns to, r10).
// Some 3 KiB of stack. 0xe7: x87, SSE, AVX, AVX-512; the runtime uses no more (no AMX, no protection keys).
#define HL_KEEPING_REGISTERS(name_, function_)                                                                     \
  __asm__(".pushsection .text\n.p2align 4\n.hidden " #name_ "\n.globl " #name_ "\n.type " #name_                   \
          ", @function\n" #name_                                                                                   \
          ":\n.cfi_startproc\n"                                                                                    \
          "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n" \
          "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\n"      \
          "cld\nsub $2752, %rsp\nand $-64, %rsp\n"                                                                 \
          "xor %eax, %eax\nmov %rax, 512(%rsp)\nmov %rax, 520(%rsp)\nmov %rax, 528(%rsp)\nmov %rax, 536(%rsp)\n"   \
          "mov %rax, 544(%rsp)\nmov %rax, 552(%rsp)\nmov %rax, 560(%rsp)\nmov %rax, 568(%rsp)\n"                   \
          "mov $0xe7, %eax\nxor %edx, %edx\n"                                                                      \
          "cmpb $1, hl_save_how(%rip)\nje 1f\njb 2f\n"                                                             \
          "xsavec64 (%rsp)\njmp 3f\n1: xsave64 (%rsp)\njmp 3f\n2: fxsave64 (%rsp)\n3:\n"                           \
          "mov %r11, %rdi\nmov 8(%rbp), %rsi\nmov %r10, %rdx\ncall " #function_                                    \
          "\n"                                                                                                     \
          "mov $0xe7, %eax\nxor %edx, %edx\n"                                                                      \
          "cmpb $0, hl_save_how(%rip)\nje 1f\nxrstor64 (%rsp)\njmp 2f\n1: fxrstor64 (%rsp)\n2:\n"                  \
          "lea -72(%rbp), %rsp\n"                                                                                  \
          "pop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\n"               \
          "pop %rbp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size " #name_ ", .-" #name_ "\n.popsection\n")
