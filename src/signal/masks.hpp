// SIGBUS is never blocked in signal mode: a fault on a thread that blocks it would end the process. What the program
// asks for is remembered, and what it asks is answered from there.
#pragma once

#include <signal.h>

#include "signal/self_paging.hpp"

namespace hinterland {

// A mask of the program's, as the kernel gets it: without SIGBUS. A null pointer stays one.
class MaskForKernel {
 public:
  explicit MaskForKernel(const sigset_t* mask) : asked_(mask != nullptr) {
    if (!asked_) return;
    copy_ = *mask;
    if (self_paging()) sigdelset(&copy_, SIGBUS);
  }
  const sigset_t* get() const { return asked_ ? &copy_ : nullptr; }

 private:
  bool asked_;
  sigset_t copy_;
};

}  // namespace hinterland
