#include "preload/catching_32_bit.hpp"

#include <sys/syscall.h>

#include <cerrno>

#include "preload/catching.hpp"
#include "preload/catching_clone.hpp"

namespace hinterland::catching {
namespace {

// Numbers of arch/x86/entry/syscalls/syscall_32.tbl; <asm/unistd_32.h> cannot be included beside the 64-bit ones.
enum Number32 : unsigned { munmap_32 = 91, mprotect_32 = 125, mremap_32 = 163, madvise_32 = 219 };

// 0: not one of those that name memory which may be far.
long same_call_of_64_bits(unsigned number) {
  switch (number) {
    case munmap_32:
      return SYS_munmap;
    case mprotect_32:
      return SYS_mprotect;
    case mremap_32:
      return SYS_mremap;
    case madvise_32:
      return SYS_madvise;
    default:
      return 0;
  }
}

long half(greg_t word) { return static_cast<long>(static_cast<unsigned>(word)); }

// The sixth argument is in rbp, which the compiler does not give away.
long interrupt_80(const greg_t* r) {
  register long sixth __asm__("r12") = half(r[REG_RBP]);
  long result;
  __asm__ volatile(
      "xchg %%rbp, %%r12\n\t"
      "int $0x80\n\t"
      "xchg %%rbp, %%r12"
      : "=a"(result), "+r"(sixth)
      : "a"(half(r[REG_RAX])), "b"(half(r[REG_RBX])), "c"(half(r[REG_RCX])), "d"(half(r[REG_RDX])),
        "S"(half(r[REG_RSI])), "D"(half(r[REG_RDI]))
      : "r8", "r9", "r10", "r11", "memory");
  return result;
}

}  // namespace

long make_call_of_32_bits(const greg_t* r) {
  if (const long number = same_call_of_64_bits(static_cast<unsigned>(r[REG_RAX])); number != 0) {
    const long result = hinterland_noticed_call(number, half(r[REG_RBX]), half(r[REG_RCX]), half(r[REG_RDX]),
                                                half(r[REG_RSI]), half(r[REG_RDI]), 0);
    return result == -1 ? -errno : result;
  }
  Paused paused;
  return interrupt_80(r);
}

}  // namespace hinterland::catching
