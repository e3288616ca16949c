#include "policy/policies.hpp"

#include <cstring>

namespace hinterland {

std::span<const hl_policy_ops* const> policies() {
#define X(table, name) &table,
  static constexpr const hl_policy_ops* kAll[] = {HL_POLICIES(X)};
#undef X
  return kAll;
}

const hl_policy_ops* find_policy(const char* name) {
  for (const hl_policy_ops* policy : policies())
    if (std::strcmp(policy->name, name) == 0) return policy;
  return nullptr;
}

}  // namespace hinterland
