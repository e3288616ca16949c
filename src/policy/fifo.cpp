// First in, first out: the page that has been resident longest leaves first (Eden 4, "default"; the cheapest there
// is).
#include <new>

#include "policy/page_list.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

struct Fifo {
  PageLinks links;
  PageList queue;
};

void* create(const hl_policy_env* environment) {
  void* place = environment->reserve(sizeof(Fifo));
  void* links = environment->reserve(std::uint64_t{environment->window_pages} * sizeof(PageLink));
  if (place == nullptr || links == nullptr) return nullptr;
  auto* fifo = new (place) Fifo;
  fifo->links.links = static_cast<PageLink*>(links);
  return fifo;
}

void arrived(void* state, hl_page first, uint32_t count, hl_arrival, uint8_t) {
  auto* fifo = static_cast<Fifo*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (!fifo->links.in_list(page)) fifo->queue.push_back(fifo->links, page);
}

void departed(void* state, hl_page first, uint32_t count) {
  auto* fifo = static_cast<Fifo*>(state);
  for (hl_page page = first; page != first + count; ++page)
    if (fifo->links.in_list(page)) fifo->queue.remove(fifo->links, page);
}

uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  auto* fifo = static_cast<Fifo*>(state);
  uint32_t chosen = 0;
  while (chosen < max && !fifo->queue.empty()) {
    hl_page page = fifo->queue.front();
    fifo->queue.remove(fifo->links, page);
    out[chosen++] = page;
  }
  return chosen;
}

uint64_t size(void* state) { return static_cast<Fifo*>(state)->queue.size(); }

}  // namespace

const hl_policy_ops kFifoPolicy = {HL_POLICY_ABI_VERSION,
                                   "fifo",
                                   "the page that has been resident longest leaves first",
                                   create,
                                   arrived,
                                   departed,
                                   choose_victims,
                                   size,
                                   nullptr,
                                   nullptr,
                                   HL_POLICY_LEAVES_AT_ONCE};

}  // namespace hinterland
