// Functions of libc's that ask whether a call may be made, and go on in libc's (interpose_descriptors.cpp,
// interpose_paths.cpp).
#pragma once

// In assembly, because nothing but what is asked about is known of their arguments, and the caller may be cancelled
// in them. A function and what it jumps to: libc's, or at first the code that looks it up (other libraries'
// constructors may come before ours). %eax is the number of vector registers of a call with "...".
//
// HL_STUB(name, looks, asks, none): `looks` are instructions that jump to 1 where the call has to be asked about, and
// keep all registers; `asks` find the caller in %rax, and leave in %al whether the call is refused; `none` is what
// the function returns then.
#define HL_KEEP_ARGUMENTS                                                                     \
  ".cfi_remember_state\n\t"                                                                   \
  "push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %rax\n\t" \
  ".cfi_def_cfa_offset 64\n\t"
#define HL_TAKE_ARGUMENTS                                                              \
  "pop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\t" \
  ".cfi_restore_state\n\t"
#define HL_STUB(name, looks, asks, none)                                                                 \
  __asm__(".pushsection .text\n\t.p2align 4\n\t.globl " #name "\n\t.type " #name ", @function\n" #name   \
          ":\n\t.cfi_startproc\n\t" looks "0:\tjmp *hinterland_next_" #name                              \
          "(%rip)\n"                                                                                     \
          "1:\t" HL_KEEP_ARGUMENTS "mov 56(%rsp), %rax\n\t" asks "\ttest %al, %al\n\t" HL_TAKE_ARGUMENTS \
          "jz 0b\n\tmov " none                                                                           \
          ", %rax\n\tret\n"                                                                              \
          "2:\t" HL_KEEP_ARGUMENTS "lea hinterland_next_" #name                                          \
          "(%rip), %rdi\n\tlea 3f(%rip), %rsi\n\t"                                                       \
          "call hinterland_find_guarded\n\t" HL_TAKE_ARGUMENTS                                           \
          "jmp 0b\n\t"                                                                                   \
          ".cfi_endproc\n\t.size " #name ", . - " #name                                                  \
          "\n\t"                                                                                         \
          ".popsection\n\t.pushsection .rodata.str1.1, \"aMS\", @progbits, 1\n3:\t.string \"" #name      \
          "\"\n\t.popsection\n\t.pushsection .data\n\t.p2align 3\nhinterland_next_" #name                \
          ":\t.quad 2b\n\t.popsection")
