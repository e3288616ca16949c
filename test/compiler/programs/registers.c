// A site of its own, written as the plug-in writes them, with known values in all registers around it: the check and
// its slow path keep them. 32 MiB are gone through in an order in which most pages are missing. Prints what differs.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERAL 14  // rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r12 r13 r14 r15; r11 and the flags may change
struct registers {
  uint64_t general[GENERAL];
  uint8_t vector[16][32];
};

// probe_NAME(in, out): loads, passes the site with the address that is in rax, stores.
#define PROBE(name_, move_, v_)                                                                                     \
  __asm__(                                                                                                          \
      ".text\n.globl probe_" name_ "\nprobe_" name_                                                                 \
      ":\n"                                                                                                         \
      "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rsi\n"                               \
      ".set i, 0\n.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n" move_ " 112+32*i(%rdi), %" v_                     \
      "\\n\n"                                                                                                       \
      ".set i, i+1\n.endr\n"                                                                                        \
      ".set i, 0\n.irp r,rax,rbx,rcx,rdx,rsi\nmov 8*i(%rdi), %\\r\n.set i, i+1\n.endr\n"                            \
      ".set i, 6\n.irp r,rbp,r8,r9,r10,r12,r13,r14,r15\nmov 8*i(%rdi), %\\r\n.set i, i+1\n.endr\n"                  \
      "mov 40(%rdi), %rdi\n"                                                                                        \
      "7: .byte 0x0f,0x1f,0x44,0x00,0x00\n"                                                                         \
      ".pushsection .text.hinterland,\"ax\",@progbits\n8: lea (%rax), %r11\njmp *__hinterland_hints+24(%rip)\n"     \
      ".popsection\n.pushsection hinterland_sites,\"aR\",@progbits\n.p2align 2\n.long 7b-., 8b-., 0\n.popsection\n" \
      "push %rdi\nmov 8(%rsp), %rdi\n"                                                                              \
      ".set i, 0\n.irp r,rax,rbx,rcx,rdx,rsi\nmov %\\r, 8*i(%rdi)\n.set i, i+1\n.endr\n"                            \
      ".set i, 6\n.irp r,rbp,r8,r9,r10,r12,r13,r14,r15\nmov %\\r, 8*i(%rdi)\n.set i, i+1\n.endr\n"                  \
      "pop %rax\nmov %rax, 40(%rdi)\n"                                                                              \
      ".set i, 0\n.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n" move_ " %" v_                                     \
      "\\n, 112+32*i(%rdi)\n"                                                                                       \
      ".set i, i+1\n.endr\n"                                                                                        \
      "pop %rsi\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n")
PROBE("sse", "movdqu", "xmm");
PROBE("avx", "vmovdqu", "ymm");
void probe_sse(const struct registers* in, struct registers* out);
void probe_avx(const struct registers* in, struct registers* out);

// The plug-in describes a module only when it has hinted something in it.
__attribute__((noinline)) static long look(long** p) { return **p; }

int main(void) {
  const size_t pages = 8192, page = 4096;
  unsigned char* memory = malloc(pages * page);
  for (size_t i = 0; i < pages * page; ++i) memory[i] = (unsigned char)(i * 7 >> 12);
  const int wide = __builtin_cpu_supports("avx");
  static struct registers in, out;
  long one = 1, *p = &one;
  uint64_t wrong = 0, sum = (uint64_t)look(&p);
  for (size_t i = 0; i < pages; ++i) {
    unsigned char* address = memory + i * 2741 % pages * page + 5;
    for (size_t byte = 0; byte < sizeof in; ++byte) ((unsigned char*)&in)[byte] = (unsigned char)(byte * 31 + i);
    in.general[0] = (uint64_t)address;
    memset(&out, 0, sizeof out);
    (wide ? probe_avx : probe_sse)(&in, &out);
    for (int r = 0; r < GENERAL; ++r) wrong += in.general[r] != out.general[r];
    for (int r = 0; r < 16; ++r) wrong += memcmp(in.vector[r], out.vector[r], wide ? 32 : 16) != 0;
    sum += *address;
  }
  printf("%lu registers changed, %lu\n", (unsigned long)wrong, (unsigned long)sum);
  return wrong != 0;
}
