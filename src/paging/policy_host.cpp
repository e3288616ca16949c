#include "paging/policy_host.hpp"

#include <cerrno>

#include "paging/reservation.hpp"

namespace hinterland {

Status PolicyHost::create(const hl_policy_ops* policy, const PageTable& pages) {
  if (policy->abi_version != HL_POLICY_ABI_VERSION)
    return std::unexpected(Error::make(0, "policy %s was built for policy interface %u, this is %u", policy->name,
                                       policy->abi_version, HL_POLICY_ABI_VERSION)
                               .remedy("build it again with this version's hinterland/policy.h"));
  hl_policy_env environment{HL_POLICY_ABI_VERSION, pages.dense_count(),
                            [](std::uint64_t bytes) { return reserve_zeroed(bytes); }};
  pages_ = &pages;
  ops_ = policy;
  state_ = policy->create(&environment);
  if (state_ == nullptr)
    return std::unexpected(Error::make(ENOMEM, "policy %s cannot start", policy->name)
                               .remedy("use a smaller --window, or raise ulimit -v"));
  return {};
}

}  // namespace hinterland
