// What this kernel, these privileges and these limits mean for `run`, told to people: for `doctor` and before `run`.
#pragma once

#include <string>
#include <vector>

namespace hinterland::cli {

enum class State {
  good,
  information,  // nothing depends on it
  missing,      // works without it, at a cost
  warning,      // works, but is likely to hurt
  blocking,     // `run` does not work
};

struct Finding {
  std::string name;
  State state = State::good;
  std::string value;  // what is there now
  std::string cost;   // what its absence costs; "" when it is there
  std::string mend;   // the command that mends it; "" when there is none or no need
};

// Findings about the kernel's features, each tried out and not only asked for, and about limits and resources.
std::vector<Finding> examine_kernel();
std::vector<Finding> examine_limits();

}  // namespace hinterland::cli
