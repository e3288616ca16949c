// See step_seams.cpp.
#pragma once

#include "kernel/fake_kernel.hpp"

namespace hinterland::testing {

// A new machine, over this kernel, which hears of the mappings that the pager makes by system calls of its own. There
// is one at a time: it gets the memory of the one before.
void begin_machine(FakeKernel* kernel);

}  // namespace hinterland::testing
