// Second chance: two queues. Pages start in the first; one that proves to be in use (a refault out of the frames
// where it was parked, or a hint) moves to the second, which is drawn from only when it holds more than its share,
// and whose pages fall back to the first before they leave. (Eden 4 "second chance"; Linux's active and inactive
// lists; the unmapped-but-not-gone list is VMS's segmented FIFO, for want of access bits.)
#include <new>

#include "policy/page_list.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

struct SecondChancePolicy {
  PageLinks links;
  PageList first;
  PageList second;
  std::uint8_t* in_second = nullptr;  // by page: which queue it is in

  PageList& list_of(hl_page page) { return in_second[page] != 0 ? second : first; }
  void put(hl_page page, bool proven) {
    in_second[page] = proven ? 1 : 0;
    list_of(page).push_back(links, page);
  }
  // The second queue may hold two thirds of all pages; what is above it falls back, oldest first.
  void balance() {
    for (int moved = 0; moved < 2 && second.size() > 2 * first.size() + 16; ++moved) {
      hl_page page = second.front();
      second.remove(links, page);
      put(page, false);
    }
  }
};

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(SecondChancePolicy));
  void* links = environment->reserve(std::uint64_t{environment->window_pages} * sizeof(PageLinks::Link));
  void* flags = environment->reserve(environment->window_pages);
  if (place == nullptr || links == nullptr || flags == nullptr) return nullptr;
  auto* policy = new (place) SecondChancePolicy;
  policy->links.links = static_cast<PageLinks::Link*>(links);
  policy->in_second = static_cast<std::uint8_t*>(flags);
  return policy;
}

void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  for (hl_page page = first; page != first + count; ++page) {
    if (policy->links.in_list(page)) continue;
    policy->put(page, why == HL_ARRIVAL_REFAULT);
    policy->balance();
  }
}

void accessed(void* state, hl_page page) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  if (!policy->links.in_list(page)) return;
  policy->list_of(page).remove(policy->links, page);
  policy->put(page, true);
  policy->balance();
}

void departed(void* state, hl_page first, uint32_t count) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (policy->links.in_list(page)) policy->list_of(page).remove(policy->links, page);
}

uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  uint32_t chosen = 0;
  while (chosen < max && !(policy->first.empty() && policy->second.empty())) {
    PageList& from = policy->first.empty() ? policy->second : policy->first;
    hl_page page = from.front();
    from.remove(policy->links, page);
    out[chosen++] = page;
    policy->balance();
  }
  return chosen;
}

uint64_t size(void* state) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  return policy->first.size() + policy->second.size();
}

}  // namespace

const hl_policy_ops kSecondChancePolicy = {HL_POLICY_ABI_VERSION,
                                           "second-chance",
                                           "a page that is touched again while it is leaving stays longer",
                                           create,
                                           arrived,
                                           accessed,
                                           departed,
                                           choose_victims,
                                           size};

}  // namespace hinterland
