// Background reclaim: keeps some of the budget free, so that faults need not (Hermit 4.2, Eden 3.3).
#pragma once

#include "paging/core.hpp"
#include "paging/evictor.hpp"
#include "paging/handler_placement.hpp"

namespace hinterland {

class Reclaimer {
 public:
  Reclaimer(Core& core, Evictor& evictor, HandlerPlacement& placement)
      : core_(core), evictor_(evictor), placement_(placement) {}

  // The thread's body: sleeps until the free part of the budget falls below the low watermark, then reclaims up to
  // the high one.
  void run();

 private:
  Core& core_;
  Evictor& evictor_;
  HandlerPlacement& placement_;
};

}  // namespace hinterland
