// Faults that park a fiber, in signal mode, where the program declares it safe (hl::fibers::faults_may_park).
//
// The SIGBUS handler does not wait. It changes the context that it was given, so that the thread goes on in a
// trampoline on the fiber's own stack: there is no signal frame then that another thread would have to return from,
// with the first one's mask and alternate stack in it. The trampoline keeps all registers, leaves the fiber as a hint
// does, and, when the page is there, jumps back to the instruction, maybe on another thread.
#pragma once

#include <cstdint>

namespace hinterland::fiber {

// Of a fiber.
struct FaultParking {
  // Instructions whose faults may park: of the program or library that declared it; low == high: none. Not those of
  // libc, which may have a lock or the address of something of this thread in a register.
  std::uintptr_t code_low = 0, code_high = 0;
  // It parked for this page and touches it again: when it is still missing, the fault is served.
  std::uintptr_t last_page = 0;
};

// Whether this processor's registers can be kept; else all faults are served as ever.
bool can_park_on_faults();
// For hl_parking.set_fault_parker.
int park_on_fault(std::uintptr_t address, int write, void* context);

}  // namespace hinterland::fiber
