// Priority: pages that hints brought with a higher ev_prio leave before all of a lower one; among equals, second
// chance. Data that is used once and data that is used again share the budget without pushing each other out. (Eden 4
// "priority"; generalises AIFM's non-temporal dereferences, which are the highest priority.)
//
// What brings a page decides: a hint's ev_prio, 0 for faults. A page that comes back before it was gone keeps its
// own.
#include <algorithm>
#include <array>
#include <new>

#include "policy/aged_queue.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr int kLevels = 16;
// Where many pages are fetched at once, the last of them are about to be used: so many of a level stay behind while
// there are others.
constexpr std::uint64_t kNewcomers = 32;
constexpr unsigned kLevelShift = 2;
static_assert(AgedQueue::kPartMask < 1 << kLevelShift);

struct PriorityPolicy {
  AgedPages pages;
  std::array<AgedQueue, kLevels> levels;  // the last one leaves first
  std::uint64_t size = 0;

  AgedQueue& level_of(hl_page page) { return levels[pages.notes[page] >> kLevelShift]; }
};

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(PriorityPolicy));
  if (place == nullptr) return nullptr;
  auto* policy = new (place) PriorityPolicy;
  return policy->pages.create(*environment) ? policy : nullptr;
}

void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t priority) {
  auto* policy = static_cast<PriorityPolicy*>(state);
  bool came_back = why == HL_ARRIVAL_REFAULT || why == HL_ARRIVAL_RETURNED;
  for (hl_page page = first; page != first + count; ++page) {
    if (policy->pages.links.in_list(page)) continue;
    if (!came_back || priority != 0)
      policy->pages.notes[page] =
          static_cast<std::uint8_t>(std::min(priority, std::uint8_t{kLevels - 1}) << kLevelShift);
    bool in_use = policy->pages.departures.came_back(page, why, policy->size);
    policy->level_of(page).enter(policy->pages, page, in_use ? AgedQueue::kProven : AgedQueue::kFresh);
    ++policy->size;
  }
}

void departed(void* state, hl_page first, uint32_t count) {
  auto* policy = static_cast<PriorityPolicy*>(state);
  for (hl_page page = first; page != first + count; ++page) {
    if (!policy->pages.links.in_list(page)) continue;
    policy->level_of(page).remove(policy->pages, page);
    --policy->size;
  }
}

uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  auto* policy = static_cast<PriorityPolicy*>(state);
  std::uint32_t chosen = 0, questions = questions_for(max);
  for (bool newcomers_stay : {true, false})
    for (int level = kLevels; level-- > 0;) {
      AgedQueue& queue = policy->levels[static_cast<std::size_t>(level)];
      std::uint64_t stay = newcomers_stay && level != 0 ? std::min(kNewcomers, policy->size / kNewcomers) : 0;
      for (; chosen < max && queue.size() > stay; --policy->size)
        out[chosen++] = queue.take(policy->pages, questions);
    }
  return chosen;
}

uint64_t size(void* state) { return static_cast<PriorityPolicy*>(state)->size; }

}  // namespace

const hl_policy_ops kPriorityPolicy = {
    HL_POLICY_ABI_VERSION,
    "priority",
    "pages that hints brought with a high ev_prio leave first; else as second-chance",
    create,
    arrived,
    departed,
    choose_victims,
    size,
    nullptr,
    nullptr,
    0};

}  // namespace hinterland
