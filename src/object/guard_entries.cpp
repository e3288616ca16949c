// Guards as instructions. Each is twice a restartable sequence: the usual one, which goes on to take kCold away from
// the word of an object that nobody has used since an evacuator looked, and, after the runtime has brought the
// object, one that leaves kCold there: what was brought counts as not used (docs/adr/0060-far-objects.md).
//
// Constants of words.hpp: 1 kAway, 2 kCold, 4 kClean; of window.hpp: 40 kPartShift.
#include "object/guard_entries.hpp"

#include "base/keeping_registers.hpp"
#include "object/window.hpp"

static_assert(hl::far::detail::kAway == 1 && hl::far::detail::kCold == 2 && hl::far::detail::kClean == 4);
static_assert(hinterland::object::Window::kPartShift == 40);

std::intptr_t hl_guard_sequence_at = 0;

// With the address in r11. They return when it is worth looking again (guards.cpp).
HL_KEEPING_REGISTERS(hl_guard_slow_read, hl_guard_bring_to_read);
HL_KEEPING_REGISTERS(hl_guard_slow_write, hl_guard_bring_to_write);

// A sequence begins with the instruction after the store that names it (else a signal between the two would leave it
// without a name), and its last instruction is the access. 0x53053053: what glibc has told the kernel to expect in
// front of the place where an interrupted one goes on. Of rcx, in which rorx leaves the address's lower bits as well,
// the number of the part is in the lowest 24 bits; shrx looks at 6 of them, bzhi at 8.
__asm__(R"asm(
.macro hl_sequence name, letter, mask, otherwise, zero, access
.L\name\()_\letter\():
  mov hl_guard_sequence_at(%rip), %r10
  lea .L\name\()_\letter\()_sequence(%rip), %rax
  mov %rax, %fs:(%r10)
.L\name\()_\letter\()_begin:
  rorx $40, %r11, %rcx
  shrx %rcx, %r11, %rax
  mov (,%rax,8), %rax
  test $\mask, %al
  jne .L\name\()_\otherwise
  and $-8, %rax
  je .L\name\()_\zero
  bzhi %rcx, %r11, %r10
  \access
.L\name\()_\letter\()_end:
  ret
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
.L\name\()_\letter\()_again:
  jmp .L\name\()_\letter
  .pushsection .data.rel.ro, "aw"
  .p2align 5
.L\name\()_\letter\()_sequence:
  .long 0, 0
  .quad .L\name\()_\letter\()_begin, .L\name\()_\letter\()_end - .L\name\()_\letter\()_begin
  .quad .L\name\()_\letter\()_again
  .popsection
.endm

.macro hl_guard name, mask, tolerant, kept, slow, prepare, access
  .p2align 5
  .hidden \name
  .globl \name
  .type \name, @function
\name\():
  .cfi_startproc
  \prepare
  hl_sequence \name, usual, \mask, other, slow, "\access"
.L\name\()_other:
  test $1, %al
  jne .L\name\()_slow
  mov %rax, %r10
  and $\kept, %r10
  shrx %rcx, %r11, %rcx
  lock cmpxchg %r10, (,%rcx,8)
  jmp .L\name\()_usual
.L\name\()_slow:
  call \slow
  hl_sequence \name, brought, \tolerant, slow, slow, "\access"
  .cfi_endproc
  .size \name, . - \name
.endm

.pushsection .text
hl_guard hl_guard_read_1, 3, 1, -3, hl_guard_slow_read, "", "movzbl (%rax,%r10), %eax"
hl_guard hl_guard_read_2, 3, 1, -3, hl_guard_slow_read, "", "movzwl (%rax,%r10), %eax"
hl_guard hl_guard_read_4, 3, 1, -3, hl_guard_slow_read, "", "movl (%rax,%r10), %eax"
hl_guard hl_guard_read_8, 3, 1, -3, hl_guard_slow_read, "", "movq (%rax,%r10), %rax"
hl_guard hl_guard_write_1, 7, 5, -7, hl_guard_slow_write, "", "movb %dl, (%rax,%r10)"
hl_guard hl_guard_write_2, 7, 5, -7, hl_guard_slow_write, "", "movw %dx, (%rax,%r10)"
hl_guard hl_guard_write_4, 7, 5, -7, hl_guard_slow_write, "", "movl %edx, (%rax,%r10)"
hl_guard hl_guard_write_8, 7, 5, -7, hl_guard_slow_write, "", "movq %rdx, (%rax,%r10)"
hl_guard hl_guard_read_bytes, 3, 1, -3, hl_guard_slow_read, "mov %rsi, %r11; mov %rdi, %r8", "lea (%rax,%r10), %rsi; mov %r8, %rdi; mov %rdx, %rcx; rep movsb"
hl_guard hl_guard_write_bytes, 7, 5, -7, hl_guard_slow_write, "mov %rdi, %r11; mov %rsi, %r8", "lea (%rax,%r10), %rdi; mov %r8, %rsi; mov %rdx, %rcx; rep movsb"
hl_guard hl_guard_fill, 7, 5, -7, hl_guard_slow_write, "mov %rdi, %r11", "lea (%rax,%r10), %rdi; mov %esi, %eax; mov %rdx, %rcx; rep stosb"
.popsection
.purgem hl_guard
.purgem hl_sequence
)asm");
