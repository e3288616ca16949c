// A cache of pages run by a policy, of which every use is known: what literature on caching measures policies by. A
// live program's hits nobody sees, so `hinterland replay` of a trace says more about one (src/trace/replay.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hinterland/policy.h"

namespace hinterland {

// Not thread-safe.
class PolicyCache {
 public:
  // Room for so many pages, at least one. `pages_max`: different pages that will be used.
  PolicyCache(const hl_policy_ops* policy, std::string settings, std::uint64_t capacity, std::uint32_t pages_max);
  ~PolicyCache();
  PolicyCache(const PolicyCache&) = delete;
  PolicyCache& operator=(const PolicyCache&) = delete;

  bool ready() const { return state_ != nullptr; }  // false: the policy had no memory for itself
  // A use of a page, any number: whether it was there. Brings it when it was not.
  bool use(std::uint64_t page);

 private:
  hl_page number_of(std::uint64_t page);
  hl_page page_at(std::uint64_t place) const;

  const hl_policy_ops* ops_;
  std::string settings_;
  std::uint64_t capacity_;
  std::uint32_t pages_max_;
  std::vector<std::pair<void*, std::size_t>> reserved_;
  void* state_ = nullptr;
  std::unordered_map<std::uint64_t, hl_page> numbers_;  // in the order of first use
  std::vector<std::uint64_t> pages_;                    // by number
  std::vector<bool> there_;                             // by number
  std::uint64_t held_ = 0;
};

}  // namespace hinterland
