// Serves faults in signal mode: on the thread that has them, in its SIGBUS handler (bus_signal.hpp). No handler
// thread, no message, no wake-up. (ExtMem 3.2.1, self-paging.)
//
// Pages are moved by the same code as in message mode, FaultHandler, of which there are a few here, a lane each: who
// faults takes one that is free. A thread leaves its lane when nothing that it asked for is on its way any longer, so
// that nobody need poll for what others began.
//
// What runs here has interrupted the program anywhere, but never the runtime with one of the locks that movers take:
// nothing that holds them touches far memory (I6). All signals but faults are blocked meanwhile.
#pragma once

#include <cstdint>

#include "paging/page/core.hpp"
#include "paging/serve/fault_outcome.hpp"
#include "paging/serve/handler_team.hpp"

namespace hinterland {

class SignalFaults {
 public:
  SignalFaults(Core& core, HandlerTeam& lanes) : core_(core), lanes_(lanes) {}

  // A touch of this address, which lies in the window, has failed. `write_protect`: the page is there. Blocks until
  // the page is there, or cannot be had; foreign: nothing could be mapped there, or it is gone again. Does not keep
  // errno.
  FaultOutcome serve(std::uintptr_t address, bool write, bool write_protect);

  // For the kernel, which serves no faults itself in this mode: the page is there (and writable) when this returns
  // true, and stays if it is held (page_marks.hpp). False: it cannot be had, or is not mapped. Called where no signal
  // handler can run that touches the page, and on local memory (bus_signal::on_local_stack): it is busy meanwhile.
  bool bring(PageIndex page, bool write);
  bool is_there(PageIndex page, bool write) const;

 private:
  FaultHandler& take_lane();
  void wait_until_free(PageIndex page);

  Core& core_;
  HandlerTeam& lanes_;
};

}  // namespace hinterland
