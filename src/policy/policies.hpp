// The policies that come with Hinterland, found by name.
#pragma once

#include <span>

#include "hinterland/policy.h"

namespace hinterland {

extern const hl_policy_ops kArcPolicy;
extern const hl_policy_ops kFifoPolicy;
extern const hl_policy_ops kLearnerPolicy;
extern const hl_policy_ops kLirsPolicy;
extern const hl_policy_ops kLruPolicy;
extern const hl_policy_ops kMglruPolicy;
extern const hl_policy_ops kPriorityPolicy;
extern const hl_policy_ops kS3FifoPolicy;
extern const hl_policy_ops kSecondChancePolicy;
extern const hl_policy_ops kSievePolicy;
extern const hl_policy_ops kTwoQueuePolicy;
extern const hl_policy_ops kWTinyLfuPolicy;

// All of them, the default first.
std::span<const hl_policy_ops* const> policies();
const hl_policy_ops* find_policy(const char* name);  // nullptr when there is none of that name

}  // namespace hinterland
