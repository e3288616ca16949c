// SIGSYS as the program sees it, while the kernel's is ours (catching.hpp). A system call that is caught on a thread
// that blocks SIGSYS would end the process, so the kernel never hears that it is blocked. What the program asks for
// is kept here, and what it asks is answered from here.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>

namespace hinterland::trap_signal {

inline constexpr std::uint64_t kBit = std::uint64_t{1} << (31 - 1);
static_assert(SIGSYS == 31);

// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  std::uint64_t flags;
  void (*restorer)();
  std::uint64_t mask;
};

inline constexpr std::uint64_t kRestorer = 0x04000000;  // SA_RESTORER
KernelAction as_kernels(const struct sigaction& action);
struct sigaction as_libcs(const KernelAction& action);

extern std::atomic<bool> g_ours;
// relaxed: changes once, while there is one thread
inline bool is_ours() { return g_ours.load(std::memory_order_relaxed); }
inline bool is_ours(int number) { return number == SIGSYS && is_ours(); }

// Installs the handler; what was there is the program's. -errno. Once a process; forked children inherit it.
int install(void (*handler)(int, siginfo_t*, void*));
// Another thread of the parent may have been in the midst of a change.
void after_fork_in_child();

// sigaction(2) for SIGSYS. Neither pointer may be far.
void exchange(const KernelAction* wanted, KernelAction* before);
// Of other signals the kernel gets the action without `hidden` in its mask: notes what is hidden of it (nullptr: as
// it was), and returns what was.
std::uint64_t exchange_hidden(int number, const std::uint64_t* hidden);
// The action of a signal, by change(wanted, before), which returns 0 if all went well.
template <typename Change>
int change_action(int number, const KernelAction* wanted, KernelAction* before, std::uint64_t hidden, Change change) {
  KernelAction given{}, found{};
  if (wanted != nullptr) given = *wanted;
  const std::uint64_t of_mask = given.mask & hidden;
  given.mask &= ~hidden;
  if (int problem = change(wanted != nullptr ? &given : nullptr, &found); problem != 0) return problem;
  found.mask |= exchange_hidden(number, wanted != nullptr ? &of_mask : nullptr);
  *before = found;
  return 0;
}

// Whether the calling thread believes that it blocks SIGSYS. Returns what it was. One that was sent meanwhile comes
// when it no longer does.
bool block(bool blocked);
bool is_blocked();

// What a mask of the program's says of `hidden`, signals that are never blocked: *set loses them, what the calling
// thread believes changes, and what it believed is returned.
std::uint64_t hide(std::uint64_t hidden, int how, std::uint64_t* set);

// For calls that are made otherwise than by libc's functions: SIGSYS where it is ours, and SIGBUS where faults come
// by signal.
std::uint64_t hidden_signals();
long change_action_by_call(int number, const void* wanted, void* before, std::size_t set_bytes);
long change_mask_by_call(int how, const void* set, void* before, std::size_t set_bytes);

// A SIGSYS that no caught call was the reason of: as if we were not there.
void pass_on(siginfo_t* info, ucontext_t* context);

}  // namespace hinterland::trap_signal
