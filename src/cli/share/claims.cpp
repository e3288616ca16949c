#include "cli/share/claims.hpp"

#include <algorithm>
#include <numeric>

#include "base/options.hpp"
#include "base/units.hpp"

namespace hinterland::cli {
namespace {

// A share of what is far too much for this is given up at each look: less, and a phase of the program is over before
// memory has moved; all of it, and what one look happened to see decides.
constexpr std::uint64_t kGivenUpALook = 4;

std::uint64_t minimum() { return option(OptionId::local).minimum; }

std::uint64_t part_of(std::uint64_t bytes, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

// What each would have in the end, were all as it is now.
std::vector<std::uint64_t> goals_of(std::uint64_t total, const std::vector<Claim>& claims) {
  const std::uint64_t least = least_share(total, claims.size()), kept = first_share(total);
  double misses = 0;
  std::uint64_t used = 0;
  for (const Claim& claim : claims) {
    misses += claim.misses;
    used += std::max(claim.used_bytes, least);
  }
  const bool pressed = used + 2 * kept > total;
  const std::uint64_t floors = least * claims.size();
  const std::uint64_t spare = pressed ? total - std::min(total, kept + floors) : total - kept - used;
  std::vector<std::uint64_t> goals;
  for (const Claim& claim : claims) {
    std::uint64_t base = std::max(claim.used_bytes, least);
    const double equal = 1.0 / static_cast<double>(claims.size());
    double share = misses > 0 ? claim.misses / misses : equal;
    if (pressed && misses <= 0) share = static_cast<double>(base) / static_cast<double>(used);
    if (!pressed) share = (share + equal) / 2;  // who is only growing misses nothing, and must not have to
    goals.push_back((pressed ? least : base) + part_of(spare, share));
  }
  return goals;
}

}  // namespace

std::uint64_t first_share(std::uint64_t total_bytes) { return std::max(page_floor(total_bytes / 16), minimum()); }

std::uint64_t least_share(std::uint64_t total_bytes, std::size_t processes) {
  std::uint64_t half = total_bytes / 2 / std::max<std::size_t>(processes, 1);
  return std::max(page_floor(std::min(first_share(total_bytes), half)), minimum());
}

std::vector<std::uint64_t> share_out(std::uint64_t total_bytes, const std::vector<Claim>& claims) {
  const std::vector<std::uint64_t> goals = goals_of(total_bytes, claims);
  std::vector<std::uint64_t> budgets;
  std::uint64_t held = first_share(total_bytes), wanted = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    // What it does not use goes at once, of what it uses a part.
    std::uint64_t budget = std::min(claim.budget_bytes, std::max(claim.used_bytes, goals[i]));
    if (budget > goals[i]) budget -= (budget - goals[i]) / kGivenUpALook;
    budgets.push_back(budget);
    held += std::max(budget, claim.used_bytes);
    wanted += goals[i] - std::min(goals[i], budget);
  }
  const std::uint64_t free = total_bytes - std::min(total_bytes, held);
  const double granted = wanted == 0 ? 0 : std::min(1.0, static_cast<double>(free) / static_cast<double>(wanted));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (goals[i] > budgets[i]) budgets[i] += part_of(goals[i] - budgets[i], granted);
    budgets[i] = std::max(page_floor(budgets[i]), minimum());
  }
  return budgets;
}

}  // namespace hinterland::cli
