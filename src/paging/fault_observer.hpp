// Who is told of each fault that reaches the pager: a contract, implemented by the trace room. Null by default, and
// then it costs the fault path one branch.
#pragma once

#include <cstdint>

namespace hinterland {

// What the fault found. The values are written into trace files: add at the end, never renumber.
enum class FaultKind : std::uint8_t {
  first_touch = 0,    // never touched before
  read = 1,           // far, read
  write = 2,          // far, written
  write_protect = 3,  // there and clean, written for the first time
  refault = 4,        // unmapped, but not gone yet (second chance)
  waited = 5,         // on its way already: for another thread, or read ahead
  spurious = 6,       // there by now
  lost = 7,           // cannot be had
};

class FaultObserver {
 public:
  // Before the page is served, while its thread sleeps: on the fault path, so no allocation, no lock, no far memory.
  // One call at a time.
  virtual void fault(std::uintptr_t address, std::uint32_t thread_id, bool write, FaultKind kind) = 0;

 protected:
  ~FaultObserver() = default;
};

}  // namespace hinterland
