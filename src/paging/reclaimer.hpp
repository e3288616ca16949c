// Background reclaim: keeps some of the budget free, so that faults need not (Hermit 4.2, Eden 3.3).
#pragma once

#include "paging/companions.hpp"
#include "paging/core.hpp"
#include "paging/evictor.hpp"

namespace hinterland {

class Reclaimer {
 public:
  Reclaimer(Core& core, Evictor& evictor, Companions& companions)
      : core_(core), evictor_(evictor), companions_(companions) {}

  // The thread's body: sleeps until the free part of the budget falls below the low watermark, then reclaims up to
  // the high one.
  void run();

 private:
  Core& core_;
  Evictor& evictor_;
  Companions& companions_;
};

}  // namespace hinterland
