#include "floor/handler.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hinterland::bench {
namespace {

thread_local Pager* pager_of_thread = nullptr;

// A failed call leaves the faulting thread waiting for ever, so there is nothing to return to.
[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "floor: while serving a fault: %s\n", why);
  _exit(1);
}

void on_signal(int, siginfo_t* info, void*) {
  auto* address = static_cast<std::byte*>(info->si_addr);
  Pager* pager = pager_of_thread;
  if (pager == nullptr || !pager->contains(address)) give_up("SIGBUS outside of what is paged");
  try {
    pager->fetch(static_cast<std::size_t>(address - pager->page(0)) / kPageSize);
  } catch (const Failed& failure) {
    give_up(failure.what());
  }
}

}  // namespace

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::hinted:
      return "hinted";
    case Placement::signal:
      return "signal";
    case Placement::same_cpu:
      return "handler-same-cpu";
    case Placement::other_cpu:
      return "handler-other-cpu";
    case Placement::other_cpu_spinning:
      return "handler-other-cpu-spinning";
    case Placement::unpinned:
      return "handler-unpinned";
  }
  return "";
}

HandlerThread::HandlerThread(Pager& pager, int processor, bool spinning)
    : pager_(pager), bell_(kPageSize), spinning_(spinning) {
  pager_.faults().add(bell_);
  thread_ = std::thread([this, processor] { serve(processor); });
}

HandlerThread::~HandlerThread() {
  if (spinning_) {
    end_.store(true, std::memory_order_relaxed);
  } else {
    *reinterpret_cast<volatile char*>(bell_.data());
  }
  thread_.join();
}

void HandlerThread::serve(int processor) {
  try {
    if (processor >= 0) pin_to(processor);
    pager_.faults().set_blocking(!spinning_);
    std::vector<std::byte*> waiting;
    waiting.reserve(64);
    while (!end_.load(std::memory_order_relaxed)) {
      waiting.clear();
      pager_.faults().read_messages(waiting);
      for (std::byte* address : waiting) handle(address);
    }
  } catch (const Failed& failure) {
    give_up(failure.what());
  }
}

void HandlerThread::handle(std::byte* address) {
  if (address == bell_.data()) {
    end_.store(true, std::memory_order_relaxed);
    pager_.faults().zero(address, kPageSize);
    return;
  }
  std::size_t index = static_cast<std::size_t>(address - pager_.page(0)) / kPageSize;
  if (pager_.resident(index)) {
    pager_.faults().wake(address, kPageSize);
  } else {
    pager_.fetch(index);  // COPY and MOVE wake the thread
  }
}

SignalHandler::SignalHandler(Pager& pager) {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGBUS, &action, nullptr) != 0) fail("sigaction", errno);
  pager_of_thread = &pager;
}

SignalHandler::~SignalHandler() { pager_of_thread = nullptr; }

}  // namespace hinterland::bench
