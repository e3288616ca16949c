// Which of the movers' accesses are ordered by memory orders, whatever the schedule was: vector clocks, as race
// detectors keep them (FastTrack, PLDI 2009). In a schedule one access comes after another anyway; here it is asked
// whether anything makes it so on a machine where stores are seen late.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/testing/scheduler.hpp"

namespace hinterland::testing {

class HappensBefore {
 public:
  HappensBefore();

  // An atomic operation, done.
  void operated(std::size_t mover, AtomicOperation operation, const void* cell, std::memory_order order);
  void locked(std::size_t mover, const void* mutex) { join(mover, released_[mutex]); }
  void unlocking(std::size_t mover, const void* mutex);
  // All movers have passed a barrier when this one goes on.
  void barrier(std::size_t mover);

  // An access to ordinary memory. False: a write of another mover, or where this is one a read, too, is ordered
  // neither before it nor after it. What the program's threads do to the same object is theirs to order.
  enum class Of : std::uint8_t { program, runtime };
  bool read(std::size_t mover, const void* begin, std::size_t bytes, Of of);
  bool write(std::size_t mover, const void* begin, std::size_t bytes, Of of);

 private:
  using Clock = std::array<std::uint32_t, Scheduler::kMoversMax>;
  struct Accesses {  // by the time at which each mover did one last; 0: before all movers
    Clock read{}, written{};
  };
  using Unit = std::array<Accesses, 2>;  // by whose they were
  static constexpr std::size_t kUnitBytes = 8;
  void join(std::size_t mover, const Clock& other);
  bool knows(std::size_t mover, const Clock& times) const;
  bool knows_writes(std::size_t mover, const Unit& unit, Of of) const;
  template <typename Each>
  bool each_unit(const void* begin, std::size_t bytes, const Each& each);

  std::array<Clock, Scheduler::kMoversMax> clocks_{};
  std::unordered_map<const void*, Clock> released_;  // by atomics and locks
  std::unordered_map<std::uintptr_t, Unit> units_;
};

}  // namespace hinterland::testing
