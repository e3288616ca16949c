/* 2Q as a plug-in: new pages pass through one queue, and those that come back soon after they left enter another.
 * (Johnson and Shasha, VLDB 1994.) Settings: the percentage of local memory for the first queue, 25 without.
 *
 *   cc -O2 -fPIC -shared two_queue.c -o two_queue.so
 *   hinterland run --policy ./two_queue.so:40 -- ./program
 */
#include <hinterland/policy.h>
#include <stdlib.h>

enum { NOWHERE, IN, MAIN, OUT, LISTS }; /* a page's list; OUT holds pages that left IN a while ago */

struct page {
  hl_page previous, next, list;
};
struct list {
  uint64_t count;
  hl_page first, last;
};
struct two_queue {
  hl_policy_env env;
  struct page* pages;
  struct list lists[LISTS];
  uint64_t in_percent;
};

static void put(struct two_queue* q, hl_page page, uint32_t number) {
  struct list* list = &q->lists[number];
  q->pages[page] = (struct page){list->last, HL_NO_PAGE, number};
  *(list->count++ != 0 ? &q->pages[list->last].next : &list->first) = page;
  list->last = page;
}

static void take(struct two_queue* q, hl_page page) {
  struct page* taken = &q->pages[page];
  struct list* list = &q->lists[taken->list];
  *(list->first == page ? &list->first : &q->pages[taken->previous].next) = taken->next;
  *(list->last == page ? &list->last : &q->pages[taken->next].previous) = taken->previous;
  --list->count;
  taken->list = NOWHERE;
}

static int is_there(const struct two_queue* q, hl_page page) {
  return q->pages[page].list == IN || q->pages[page].list == MAIN;
}
static void* create(const hl_policy_env* env) {
  struct two_queue* q = env->reserve(sizeof *q);
  if (q == NULL) return NULL;
  q->env = *env;
  q->pages = env->reserve((uint64_t)env->window_pages * sizeof *q->pages);
  q->in_percent = env->settings[0] != '\0' ? strtoul(env->settings, NULL, 10) : 25;
  return q->pages != NULL ? q : NULL;
}

static void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t priority) {
  struct two_queue* q = state;
  (void)priority;
  for (hl_page page = first; page != first + count; ++page) {
    if (is_there(q, page)) continue;
    int known = q->pages[page].list == OUT;
    if (known) take(q, page);
    put(q, page, known || why == HL_ARRIVAL_REFAULT ? MAIN : IN);
  }
}

static void departed(void* state, hl_page first, uint32_t count) {
  struct two_queue* q = state;
  for (hl_page page = first; page != first + count; ++page)
    if (is_there(q, page)) take(q, page);
}

static uint64_t size(void* state) {
  struct two_queue* q = state;
  return q->lists[IN].count + q->lists[MAIN].count;
}

static uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  struct two_queue* q = state;
  uint32_t chosen = 0;
  for (; chosen < max && size(q) != 0; ++chosen) {
    uint64_t room = q->env.capacity(q->env.runtime);
    int from_in = q->lists[MAIN].count == 0 || q->lists[IN].count > room / 100 * q->in_percent;
    hl_page page = q->lists[from_in && q->lists[IN].count != 0 ? IN : MAIN].first;
    take(q, page);
    if (from_in) put(q, page, OUT);
    if (q->lists[OUT].count > room / 2) take(q, q->lists[OUT].first);
    out[chosen] = page;
  }
  return chosen;
}

HL_POLICY_PLUGIN = {
    .abi_version = HL_POLICY_ABI_VERSION,
    .name = "two-queue",
    .help = "pages that came back soon after they left stay longer",
    .create = create,
    .arrived = arrived,
    .departed = departed,
    .choose_victims = choose_victims,
    .size = size,
};
