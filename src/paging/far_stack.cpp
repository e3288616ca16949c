#include "paging/far_stack.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "base/raw_call.hpp"
#include "paging/bus_signal.hpp"

namespace hinterland {

__attribute__((naked)) void call_on_stack(char* /*top*/, void (* /*body*/)(void*), void* /*argument*/) {
  __asm__(
      "push %rbp\n\t"
      ".cfi_def_cfa_offset 16\n\t"
      ".cfi_offset rbp, -16\n\t"
      "mov %rsp, %rbp\n\t"
      ".cfi_def_cfa_register rbp\n\t"
      "mov %rdi, %rsp\n\t"
      "mov %rdx, %rdi\n\t"
      "call *%rsi\n\t"
      "mov %rbp, %rsp\n\t"
      "pop %rbp\n\t"
      ".cfi_def_cfa rsp, 8\n\t"
      "ret");
}

namespace far_stack {
namespace {

// As many threads as make such calls at once; more of them make a stack and drop it.
std::array<std::atomic<void*>, 16> g_kept{};

}  // namespace

void* take() {
  // acquire: pairs with give_back(); what the last user left there is done with
  for (std::atomic<void*>& slot : g_kept)
    if (slot.load(std::memory_order_relaxed) != nullptr)
      if (void* stack = slot.exchange(nullptr, std::memory_order_acquire); stack != nullptr) return stack;
  // By the system call itself: mmap is the interposer, which is where this comes from.
  long made = raw::checked(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  return made == -1 ? nullptr : reinterpret_cast<void*>(made);
}

void give_back(void* stack) {
  for (std::atomic<void*>& slot : g_kept) {
    void* none = nullptr;
    // release: pairs with take()
    if (slot.compare_exchange_strong(none, stack, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  raw::checked(SYS_munmap, stack, kBytes);
}

bool must_stay() {
  if (!bus_signal::installed()) return false;
  stack_t alternate{};
  return syscall(SYS_sigaltstack, nullptr, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace far_stack
}  // namespace hinterland
