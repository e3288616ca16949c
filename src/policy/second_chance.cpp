// Second chance: pages leave in the order they came, but for those that proved to be in use: they came back out of
// the frame where they were parked (VMS's segmented FIFO, for want of access bits), were fetched again soon after
// they had left (departures.hpp), or a hint named them late in their stay.
#include <new>

#include "policy/aged_queue.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

struct SecondChancePolicy {
  AgedPages pages;
  AgedQueue queue;
};

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(SecondChancePolicy));
  if (place == nullptr) return nullptr;
  auto* policy = new (place) SecondChancePolicy;
  return policy->pages.create(*environment) ? policy : nullptr;
}

void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  for (hl_page page = first; page != first + count; ++page) {
    if (policy->pages.links.in_list(page)) continue;
    bool in_use = policy->pages.departures.came_back(page, why, policy->queue.size());
    policy->queue.enter(policy->pages, page, in_use ? AgedQueue::kProven : AgedQueue::kFresh);
  }
}

void departed(void* state, hl_page first, uint32_t count) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (policy->pages.links.in_list(page)) policy->queue.remove(policy->pages, page);
}

uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  auto* policy = static_cast<SecondChancePolicy*>(state);
  std::uint32_t chosen = 0, questions = questions_for(max);
  while (chosen < max && policy->queue.size() != 0) out[chosen++] = policy->queue.take(policy->pages, questions);
  return chosen;
}

uint64_t size(void* state) { return static_cast<SecondChancePolicy*>(state)->queue.size(); }

}  // namespace

const hl_policy_ops kSecondChancePolicy = {
    HL_POLICY_ABI_VERSION,
    "second-chance",
    "a page that is used again while it is leaving, or soon after, stays longer",
    create,
    arrived,
    departed,
    choose_victims,
    size,
    nullptr,
    nullptr,
    0};

}  // namespace hinterland
