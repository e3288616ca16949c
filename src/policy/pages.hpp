// What the policies keep of each page, beside its place in a list: one byte, and what hints say.
#pragma once

#include <cstdint>

#include "policy/page_list.hpp"

namespace hinterland {

struct PolicyPages {
  PageLinks links;
  std::uint8_t* notes = nullptr;  // by page: the policy's own

  // False when there is no memory for it.
  bool create(const hl_policy_env& environment) {
    links.links =
        static_cast<PageLink*>(environment.reserve(std::uint64_t{environment.window_pages} * sizeof(PageLink)));
    notes = static_cast<std::uint8_t*>(environment.reserve(environment.window_pages));
    environment_ = environment;
    return links.links != nullptr && notes != nullptr;
  }
  bool was_hinted(hl_page page) const {
    return environment_.was_hinted != nullptr && environment_.was_hinted(environment_.runtime, page) != 0;
  }

 private:
  hl_policy_env environment_{};
};

// So often a policy may ask about pages to find so many victims: where all pages are in use, some must leave anyway.
constexpr std::uint32_t questions_for(std::uint32_t victims) { return 2 * victims + 16; }

}  // namespace hinterland
