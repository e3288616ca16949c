// The policies that come with Hinterland, found by name.
#pragma once

#include <span>

#include "base/policy_names.hpp"
#include "hinterland/policy.h"

namespace hinterland {

#define X(table, name) extern const hl_policy_ops table;
HL_POLICIES(X)
#undef X

// All of them, the default first.
std::span<const hl_policy_ops* const> policies();
const hl_policy_ops* find_policy(const char* name);  // nullptr when there is none of that name

}  // namespace hinterland
