// What waiting for a fault handler costs on this machine.
#pragma once

#include <cstdint>

#include "kernel/kernel.hpp"

namespace hinterland::trace {

// Nanoseconds that a fault takes more when another thread on the same CPU serves it, or the thread itself in a signal
// handler, than the same page does when the thread brings it in before it touches it: what a hint spares, besides
// what is spared by asking early. A few hundred pages of our own, on the calling thread's CPU; the quickest of three
// rounds. 0 when this kernel, or this user, cannot do it. Takes about 7 ms. Opens `kernel`, which gets nothing else
// to do. By signal the process's handler of SIGBUS is another one meanwhile, so one caller at a time.
std::uint64_t measure_handler_cost_ns(Kernel& kernel, FaultDelivery delivery);

}  // namespace hinterland::trace
