// Explores all schedules of an interleaving: depth first, each from the start again, and no further where a state
// comes up that was explored before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/testing/scheduler.hpp"

namespace hinterland::testing {

// Movers, what they work on, and what must hold.
class Explored {
 public:
  virtual ~Explored() = default;
  // One schedule. "" or what is wrong.
  virtual std::string run(const Scheduler::Choose& choose, std::uint64_t steps_max) = 0;
  // Everything that the future depends on.
  virtual std::uint64_t state() const = 0;
  virtual Scheduler& scheduler() = 0;
};

struct Exploration {
  std::uint64_t schedules = 0;  // run
  std::uint64_t states = 0;     // different ones in which there was a choice
  std::uint64_t steps = 0;
  bool complete = true;  // false: stopped at schedules_max
  std::string wrong;     // the first thing that went wrong, with its schedule
};

// prune: false runs every schedule to its end, as a check of the pruning itself on small interleavings.
Exploration explore(const std::function<std::unique_ptr<Explored>()>& make, std::uint64_t schedules_max,
                    bool prune = true);

}  // namespace hinterland::testing
