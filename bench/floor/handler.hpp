// Who does the work of a miss, and where: the caller itself before it touches (a hint), the faulting thread in
// SIGBUS, or a handler thread on the same CPU, on another, or wherever the scheduler puts it.
#pragma once

#include <atomic>
#include <exception>
#include <thread>

#include "floor/pager.hpp"

namespace hinterland::bench {

enum class Placement { hinted, signal, same_cpu, other_cpu, other_cpu_spinning, unpinned };
const char* name_of(Placement placement);
constexpr bool has_handler(Placement placement) {
  return placement != Placement::hinted && placement != Placement::signal;
}

// A thread that serves the pager's faults from construction to destruction.
class HandlerThread {
 public:
  // processor: where it is pinned, or -1. spinning: it polls, and never sleeps.
  HandlerThread(Pager& pager, int processor, bool spinning);
  ~HandlerThread();
  HandlerThread(const HandlerThread&) = delete;
  HandlerThread& operator=(const HandlerThread&) = delete;

 private:
  void serve(int processor);
  void handle(std::byte* address);

  Pager& pager_;
  Mapping bell_;  // a fault here tells a handler that sleeps in read() to end
  bool spinning_;
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

// While it lives, SIGBUS of the calling thread inside the pager's range fetches what is missing.
class SignalHandler {
 public:
  explicit SignalHandler(Pager& pager);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;
};

}  // namespace hinterland::bench
