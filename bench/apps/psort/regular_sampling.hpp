// Parallel sorting by regular sampling: each member of a team sorts a part, samples of all parts say which values
// each member is to have, and each merges those. (Shi and Schaeffer, 1992; Eden A.4)
#pragma once

#include <functional>
#include <span>

#include "psort/quicksort.hpp"

namespace psort {

// Runs body(i) for the i-th of the team, all of them, and returns when they have ended.
using Team = std::function<void(const std::function<void(unsigned)>& body)>;

// Sorts `values`, with a second array of as many. What that holds does not matter.
void sort_by_regular_sampling(std::span<Value> values, std::span<Value> room, unsigned members, const Team& on_team);

}  // namespace psort
