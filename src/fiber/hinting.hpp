// Hints of fibers: what the preloaded runtime offers for them (hinterland/parking.h), and how it is reached.
//
// hint.h calls through hl_runtime.hint, which is replaced for as long as fibers run: on a fiber the hint leaves it,
// and the worker asks the runtime, on a stack that is large enough for it; anywhere else it does what it did before.
#pragma once

#include "fiber/control.hpp"

namespace hinterland::fiber {

// Counted: the first scheduler begins, the last one ends it. Nothing without the runtime.
void begin_hinting();
void end_hinting();

// A worker, off the fiber's stack. True when pages are on their way, and the hint is one that waits for them.
bool hint_begin(const HintCall& hint);
bool hint_is_on_its_way(const HintCall& hint);
// Gathers what has arrived, for anybody.
bool hints_poll();

}  // namespace hinterland::fiber
