// Who is told of each fault that reaches the pager, and of each hint that has something to do: a contract,
// implemented by the trace room. Null by default, and then it costs the fault path, and a hint on a missing page, one
// branch.
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

// A hint that finds pages missing, as seen before it does anything about them: other threads may change that
// meanwhile.
struct HintSeen {
  std::uintptr_t address = 0;
  std::uint32_t pages = 0;          // that it names
  std::int32_t read_ahead = 0;      // pages that it asks for besides; below zero: before them
  std::uint32_t far = 0;            // of those named: far; ...
  std::uint32_t parked = 0;         // ... unmapped, but not gone yet; ...
  std::uint32_t write_protect = 0;  // ... there and clean, and the hint says that they will be written
  std::uint32_t far_ahead = 0;      // of the read-ahead: far
  bool write = false, sequential = false;
  std::uint8_t priority = 0;
};

class FaultObserver {
 public:
  // Before the page is served, while its thread sleeps, or on it: on the fault path, so no allocation, no lock, no
  // far memory. Several at a time. `expects_write`: of a read, that the page will be mapped writable all the same,
  // because it was written before; if it is written now, no fault says so.
  virtual void fault(std::uintptr_t address, std::uint32_t thread_id, bool write, FaultKind kind,
                     bool expects_write) = 0;
  // Signal mode, where the faulting thread itself says so, after fault() for the same page: it may go on now.
  virtual void served(std::uintptr_t /*address*/, std::uint32_t /*thread_id*/) {}
  // On the thread that hints, several at a time, holding nothing.
  virtual void hint(const HintSeen& /*seen*/) {}
  // The same for one that finds all its pages there: of those that ask the runtime, which are few (hint_map.hpp).
  virtual void hint_found_all(const HintSeen& /*seen*/) {}
  // Nobody listens any more, and nobody will.
  virtual bool is_over() { return false; }
  // Hints are only told of, and not followed: what they would have spared comes as a fault.
  virtual bool hints_are_only_noted() const { return false; }

 protected:
  ~FaultObserver() = default;
};

// Somebody outside asks a process that runs to be observed (StatPage::trace_directory): whom it is to tell, or why
// not, as -errno (EBUSY: it is observed already). On a thread of the runtime.
using ObserveOnRequest = int (*)(const char* directory, std::uint64_t instruction_every, FaultObserver** observer);

}  // namespace hinterland
