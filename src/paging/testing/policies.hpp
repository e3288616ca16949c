// The policies that tests of this room run under. They live in a room above and are linked into the test programs.
#pragma once

#include "hinterland/policy.h"

namespace hinterland {

extern const hl_policy_ops kFifoPolicy;
extern const hl_policy_ops kSecondChancePolicy;
extern const hl_policy_ops kLruPolicy;
extern const hl_policy_ops kPriorityPolicy;
extern const hl_policy_ops kLearnerPolicy;

}  // namespace hinterland
