#include "policy/policies.hpp"

#include <array>
#include <cstring>

namespace hinterland {

std::span<const hl_policy_ops* const> policies() {
  static constexpr std::array kAll = {&kLearnerPolicy,  &kSecondChancePolicy, &kFifoPolicy,     &kLruPolicy,
                                      &kPriorityPolicy, &kSievePolicy,        &kS3FifoPolicy,   &kTwoQueuePolicy,
                                      &kArcPolicy,      &kLirsPolicy,         &kWTinyLfuPolicy, &kMglruPolicy};
  return kAll;
}

const hl_policy_ops* find_policy(const char* name) {
  for (const hl_policy_ops* policy : policies())
    if (std::strcmp(policy->name, name) == 0) return policy;
  return nullptr;
}

}  // namespace hinterland
