#include "base/claims.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace hinterland {
namespace {

// A share of what is far too much for this is given up at each look: less, and a phase of the program is over before
// memory has moved; all of it, and what one look happened to see decides.
constexpr std::uint64_t kGivenUpALook = 4;

std::uint64_t part_of(std::uint64_t bytes, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

// What is asked for and used, of all claims.
struct Sums {
  double misses = 0;
  std::uint64_t used = 0;
  std::size_t count = 0;
};

double miss_share(const Claim& claim, const Sums& sums) {
  return sums.misses > 0 ? claim.misses / sums.misses : 1.0 / static_cast<double>(sums.count);
}

// Each keeps what it uses, and of the rest half is for all alike: who only grows misses nothing, and must not have
// to.
std::uint64_t goal_with_room(const Claim& claim, const Sums& sums, const SharedTotal& total) {
  const std::uint64_t base = std::max(claim.used_bytes, total.least), all = total.bytes - total.kept;
  if (sums.used > all) return part_of(base, static_cast<double>(all) / static_cast<double>(sums.used));
  return base + part_of(all - sums.used, (miss_share(claim, sums) + 1.0 / static_cast<double>(sums.count)) / 2);
}

std::uint64_t goal_without_room(const Claim& claim, const Sums& sums, const SharedTotal& total) {
  const std::uint64_t taken = total.kept + total.least * sums.count;
  return total.least + part_of(total.bytes - std::min(total.bytes, taken), miss_share(claim, sums));
}

// What each would have in the end, were all as it is now.
std::vector<std::uint64_t> goals_of(const SharedTotal& total, const std::vector<Claim>& claims) {
  Sums sums{.count = claims.size()};
  for (const Claim& claim : claims) {
    sums.misses += claim.misses;
    sums.used += std::max(claim.used_bytes, total.least);
  }
  // Few misses are no reason to take away what is used: where all just fits, that would bring more.
  const double urgency = sums.used + total.slack > total.bytes ? std::min(1.0, sums.misses / total.urgent) : 0;
  std::vector<std::uint64_t> goals;
  for (const Claim& claim : claims)
    goals.push_back(part_of(goal_with_room(claim, sums, total), 1 - urgency) +
                    part_of(goal_without_room(claim, sums, total), urgency));
  return goals;
}

}  // namespace

std::vector<std::uint64_t> share_out(const SharedTotal& total, const std::vector<Claim>& claims) {
  const std::vector<std::uint64_t> goals = goals_of(total, claims);
  std::vector<std::uint64_t> budgets;
  std::uint64_t held = total.kept, wanted = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    // What it does not use goes at once, of what it uses a part.
    std::uint64_t budget = std::min(claim.budget_bytes, std::max(claim.used_bytes, goals[i]));
    if (budget > goals[i]) budget -= (budget - goals[i]) / kGivenUpALook;
    budgets.push_back(budget);
    held += std::max(budget, claim.used_bytes);
    wanted += goals[i] - std::min(goals[i], budget);
  }
  const std::uint64_t free = total.bytes - std::min(total.bytes, held);
  const double granted = wanted == 0 ? 0 : std::min(1.0, static_cast<double>(free) / static_cast<double>(wanted));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (goals[i] > budgets[i]) budgets[i] += part_of(goals[i] - budgets[i], granted);
    budgets[i] = std::max(page_floor(budgets[i]), total.least);
  }
  return budgets;
}

}  // namespace hinterland
