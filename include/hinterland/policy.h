/* A policy: which pages leave local memory. (Eden 4 "Reclaim policies", ExtMem 3.4)
 *
 * A policy is told of every arrival and departure, and asked for victims. Calls come one at a time (the runtime holds
 * its policy lock), so a policy needs no locks of its own. A call must not allocate, must not block and must do
 * bounded work: O(pages told of). Pages (4 KiB each) are numbered densely, in the order in which the program first
 * came near them: sixteen neighbours in memory have neighbouring numbers, from a multiple of sixteen on; a page keeps
 * its number for ever.
 *
 * C ABI, so that a policy can be a plug-in in any language.
 */
#ifndef HINTERLAND_POLICY_H
#define HINTERLAND_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HL_POLICY_ABI_VERSION 2u

typedef uint32_t hl_page;
#define HL_NO_PAGE UINT32_MAX

typedef enum hl_arrival {
  HL_ARRIVAL_FIRST_TOUCH = 0, /* never touched before */
  HL_ARRIVAL_FAULT = 1,       /* fetched because the program touched it */
  HL_ARRIVAL_HINT = 2,        /* fetched because a hint announced it */
  HL_ARRIVAL_READ_AHEAD = 3,  /* fetched before it was asked for */
  HL_ARRIVAL_REFAULT = 4,     /* touched again while it was leaving: second chance */
  HL_ARRIVAL_RETURNED = 5     /* chosen as a victim, but could not be taken (pinned) */
} hl_arrival;

/* What the runtime offers a policy. */
typedef struct hl_policy_env {
  uint32_t abi_version;
  hl_page window_pages; /* page numbers are below this */
  /* Zeroed local memory of any size, for the life of the process; only to be called in create(). Untouched parts
   * cost nothing, so an array over the whole window is fine. NULL when there is none. */
  void* (*reserve)(uint64_t bytes);
  /* 1 when a hint has named the page since the last question about it, or since the page was moved; else 0. Only the
   * question makes the runtime listen, so the first answer about a page that arrived says nothing. What it listens
   * for costs the program a call of some 50 ns: ask a few times on a page's way out, not once a call of yours. NULL
   * where nobody knows. */
  int (*was_hinted)(void* runtime, hl_page page);
  void* runtime; /* for was_hinted */
} hl_policy_env;

typedef struct hl_policy_ops {
  uint32_t abi_version;
  const char* name;
  const char* help; /* one line */

  void* (*create)(const hl_policy_env* env); /* NULL: not enough memory */

  /* Pages [first, first + count) became resident. priority: 0 (keep) to 15 (evict soon), 0 without a hint. */
  void (*arrived)(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t priority);
  /* The page is gone: freed by the program, or taken although not chosen. Victims handed out are not told of again.
   * A page that is not resident may be named: then there is nothing to do. */
  void (*departed)(void* state, hl_page first, uint32_t count);
  /* Up to `max` victims, best first, into `out`; they leave the policy's lists. Returns how many. */
  uint32_t (*choose_victims)(void* state, hl_page* out, uint32_t max);
  /* How many pages the policy holds: for the runtime's own checks. */
  uint64_t (*size)(void* state);
} hl_policy_ops;

#ifdef __cplusplus
}
#endif
#endif
