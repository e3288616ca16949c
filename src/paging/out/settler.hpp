// Writes back what a fault handler has taken.
//
// Scattered pages are best taken on the CPU where the program runs (ADR 0015), and that is the handler's; but then to
// compress or copy them, and to give their memory back, is work that another CPU can do while the next faults are
// served (docs/adr/0021-another-thread-writes-back.md). A thread that sleeps until the handler calls it, once for
// each batch. It is made when it is first called (the housekeeper asks); until then handlers write back what they
// take.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "paging/out/evictor.hpp"
#include "paging/place/attendance.hpp"
#include "paging/place/companions.hpp"

namespace hinterland {

class Settler {
 public:
  explicit Settler(Companions& companions) : companions_(companions) {}
  void leave_out() { left_out_ = true; }  // there will be no thread; before it is asked for

  // --- handlers
  // True when the thread is there. When it is not, this asks for it.
  bool ready();
  // Evictor::try_settle_taken() by the thread, soon. One evictor for the life of the process. Does not block.
  void call(unsigned handler, Evictor& evictor);

  // --- the housekeeper, under the pager's map lock: no fork meanwhile
  void set_waker(void (*wake_housekeeper)()) { wake_housekeeper_ = wake_housekeeper; }
  bool wants_start() const { return wanted_.load(std::memory_order_relaxed) && !tried_ && !left_out_; }
  void start();

  // The thread's work. False: one of them was busy, and has something left. Waits for none of them: who is at work
  // there may wait for what another one has taken.
  bool settle_all();

  void after_fork_in_child();

 private:
  void run();

  Companions& companions_;
  void (*wake_housekeeper_)() = nullptr;
  std::atomic<bool> wanted_{false};
  bool left_out_ = false;
  bool tried_ = false;  // the housekeeper's
  std::atomic<bool> ready_{false};
  std::array<std::atomic<Evictor*>, Attendance::kHandlersMax> evictors_{};  // of handlers that called
  std::atomic<std::uint32_t> calls_{0};                                     // futex
};

}  // namespace hinterland
