#include "base/testing/explorer.hpp"

#include <unordered_set>
#include <vector>

namespace hinterland::testing {
namespace {

constexpr std::uint64_t kStepsMax = 100'000;  // of one schedule; the longest take a few hundred

struct Decision {
  std::size_t choices, chosen;
};

std::string spelled(const std::vector<Decision>& decisions) {
  std::string text = " [schedule ";
  for (const Decision& decision : decisions) text += static_cast<char>('0' + decision.chosen);
  return text + "]";
}

}  // namespace

Exploration explore(const std::function<std::unique_ptr<Explored>()>& make, std::uint64_t schedules_max, bool prune) {
  Exploration result;
  std::unordered_set<std::uint64_t> seen;
  std::vector<Decision> decisions;
  do {
    std::unique_ptr<Explored> explored = make();
    std::size_t depth = 0;
    bool known = false;  // from here on it was explored: only to the end of this run
    auto choose = [&](std::span<const std::size_t> ready) -> std::size_t {
      if (depth < decisions.size()) return decisions[depth++].chosen;
      if (!known && prune && !seen.insert(explored->state()).second) known = true;
      if (known) return 0;
      decisions.push_back({ready.size(), 0});
      ++depth;
      return 0;
    };
    std::string wrong = explored->run(choose, kStepsMax);
    result.steps += explored->scheduler().steps();
    ++result.schedules;
    if (!wrong.empty()) {
      result.wrong = wrong + spelled(decisions);
      break;
    }
    while (!decisions.empty() && decisions.back().chosen + 1 == decisions.back().choices) decisions.pop_back();
    if (!decisions.empty()) ++decisions.back().chosen;
    if (result.schedules == schedules_max && !decisions.empty()) {
      result.complete = false;
      break;
    }
  } while (!decisions.empty());
  result.states = seen.size();
  return result;
}

}  // namespace hinterland::testing
