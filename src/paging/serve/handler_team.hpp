// The process's fault handlers: one that serves whatever comes, and spare ones that go to a second, third and fourth
// thread that faults at the same time (docs/adr/0017-a-handler-for-each-faulting-thread.md).
//
// Spare handlers are made when they are first called: most programs fault in one thread, and each costs a thread, a
// channel and buffers. Only over devices that answer at once: over others one handler keeps many requests in flight.
#pragma once

#include <array>
#include <memory>

#include "paging/out/settler.hpp"
#include "paging/place/attendance.hpp"
#include "paging/place/companions.hpp"
#include "paging/serve/fault_handler.hpp"

namespace hinterland {

class HandlerTeam {
 public:
  HandlerTeam(Core& core, ProgramThreads& threads) : core_(core), threads_(threads) {}

  // Handler 0, without a thread. `direct` is borrowed.
  Status create(Evictor& direct);
  FaultHandler& first() { return *handlers_[0]; }
  // The next spare handler, without a thread. Not while the program forks. EAGAIN: there is no further one.
  Result<FaultHandler*> add();
  Companions& companions() { return companions_; }
  // For tests.
  Attendance& attendance() { return attendance_; }
  void leave_out_settler() { settler_.leave_out(); }  // before start()

  // Handler 0's thread. `wake_housekeeper`: as soon as one of the two calls below has something to do.
  Status start(void (*wake_housekeeper)());

  // --- signal mode: the handlers without threads, a lane each
  Status start_lanes(void (*wake_housekeeper)());
  unsigned lanes() const { return made_.load(std::memory_order_relaxed); }
  FaultHandler& lane(unsigned number) { return *handlers_[number]; }

  // --- the housekeeper
  // Threads for spare handlers that were called and have none. The pager's map lock is held: no fork meanwhile.
  void start_called();
  bool wants_start() const;
  // As HandlerPlacement::watch(), for all of them.
  std::uint64_t watch();

  // Tests ask it to start, in the place of a run that would be worth its help.
  MapHelper& map_helper() { return map_helper_; }

  // --- fork (fault_handler.hpp)
  void pause();
  void resume();
  // The parent's handlers are left alone, not destroyed: their channels belong to connections that it still uses.
  void after_fork_in_child();

 private:
  bool next_is_called() const;

  Core& core_;
  ProgramThreads& threads_;
  Attendance attendance_;
  Companions companions_;
  Settler settler_{companions_};
  MapHelper map_helper_{companions_};
  void (*wake_housekeeper_)() = nullptr;
  std::array<std::unique_ptr<Evictor>, Attendance::kHandlersMax> evictors_;  // of spare handlers
  std::array<std::unique_ptr<FaultHandler>, Attendance::kHandlersMax> handlers_;
  std::atomic<unsigned> made_{1};  // written by the housekeeper
};

}  // namespace hinterland
