#include "fiber/overflow.hpp"

#include <unistd.h>

#include <mutex>

#include "base/log.hpp"
#include "fiber/scheduler.hpp"

namespace hinterland::fiber {
namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;

struct sigaction g_program;  // what the program does about SIGSEGV
std::once_flag g_installed;

void on_fault(int signal, siginfo_t* info, void* context) {
  Fiber* fiber = current_fiber();
  auto* at = static_cast<std::byte*>(info->si_addr);
  if (fiber != nullptr && at < fiber->stack.low && at >= fiber->stack.low - Stacks::kGuardBytes)
    report_overflow(*fiber);
  if ((g_program.sa_flags & SA_SIGINFO) != 0) {
    g_program.sa_sigaction(signal, info, context);
  } else if (g_program.sa_handler != SIG_DFL && g_program.sa_handler != SIG_IGN) {
    g_program.sa_handler(signal);
  } else {
    sigaction(SIGSEGV, &g_program, nullptr);  // returns to the instruction that faults, and that ends the program
  }
}

void install() {
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, &g_program);
}

}  // namespace

void report_overflow(const Fiber& fiber) {
  log::error(
      "fiber %llu '%s' has used up its stack of %zu KiB; give it more (fiber_options.stack_bytes, or "
      "run_options.stack_bytes for all), or keep large arrays elsewhere",
      static_cast<unsigned long long>(fiber.id), fiber.name, fiber.stack.bytes() / 1024);
  struct sigaction default_action{};
  default_action.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &default_action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(SIGSEGV);
  _exit(128 + SIGSEGV);
}

SignalStack::SignalStack() {
  std::call_once(g_installed, install);
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  memory_ = map_local(kSignalStackBytes);
  stack_t ours{memory_, 0, kSignalStackBytes};
  if (memory_ != nullptr) sigaltstack(&ours, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none{nullptr, SS_DISABLE, 0};
  sigaltstack(&none, nullptr);
  unmap_local(memory_, kSignalStackBytes);
}

}  // namespace hinterland::fiber
