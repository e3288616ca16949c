// How much of its caller's stack a call uses: the stack below is painted, and looked at afterwards.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Calls function() on the stack that the caller is on, which reaches down to `low` (a multiple of 8), and puts into
// *deepest how many bytes below the stack pointer were written. What is in the forked child is the child's.
long measure(long (*function)(void), char* low, size_t* deepest);
// Calls function(argument) with the stack pointer at `top`, a multiple of 16.
void call_on(char* top, void (*function)(void*), void* argument);

__asm__(
    ".text\n"
    ".type measure, @function\n"
    "measure:\n\t"
    ".cfi_startproc\n\t"
    "push %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbx, 0\n\t"
    "push %r12\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset r12, 0\n\t"
    "push %r13\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset r13, 0\n\t"
    "mov %rdi, %rbx\n\t"
    "mov %rsi, %r12\n\t"
    "mov %rdx, %r13\n\t"
    "movabs $0x5a5a5a5a5a5a5a5a, %rax\n\t"
    "mov %r12, %rdi\n\t"
    "mov %rsp, %rcx\n\t"
    "sub %r12, %rcx\n\t"
    "shr $3, %rcx\n\t"
    "rep stosq\n\t"
    "call *%rbx\n\t"
    "mov %rax, %rdx\n\t"
    "movabs $0x5a5a5a5a5a5a5a5a, %rax\n\t"
    "mov %r12, %rdi\n\t"
    "mov %rsp, %rcx\n\t"
    "sub %r12, %rcx\n\t"
    "shr $3, %rcx\n\t"
    "repe scasq\n\t"
    "lea 8(%rsp), %rcx\n\t"
    "sub %rdi, %rcx\n\t"
    "mov %rcx, (%r13)\n\t"
    "mov %rdx, %rax\n\t"
    "pop %r13\n\t.cfi_adjust_cfa_offset -8\n\t"
    "pop %r12\n\t.cfi_adjust_cfa_offset -8\n\t"
    "pop %rbx\n\t.cfi_adjust_cfa_offset -8\n\t"
    "ret\n\t"
    ".cfi_endproc\n"
    ".size measure, .-measure\n"
    ".type call_on, @function\n"
    "call_on:\n\t"
    ".cfi_startproc\n\t"
    "push %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset rbp, -16\n\t"
    "mov %rsp, %rbp\n\t.cfi_def_cfa_register rbp\n\t"
    "mov %rdi, %rsp\n\t"
    "mov %rdx, %rdi\n\t"
    "call *%rsi\n\t"
    "mov %rbp, %rsp\n\t"
    "pop %rbp\n\t.cfi_def_cfa rsp, 8\n\t"
    "ret\n\t"
    ".cfi_endproc\n"
    ".size call_on, .-call_on\n");
