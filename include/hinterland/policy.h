/* A policy: which pages leave local memory. (Eden 4 "Reclaim policies", ExtMem 3.4)
 *
 * A policy is told of every arrival and departure, and asked for victims. Calls come one at a time (the runtime holds
 * its policy lock), so a policy needs no locks of its own. A call must not allocate, must not block and must do
 * bounded work: O(pages told of). Pages (4 KiB each) are numbered densely, in the order in which the program first
 * came near them: sixteen neighbours in memory have neighbouring numbers, from a multiple of sixteen on; a page keeps
 * its number for ever.
 *
 * C ABI, so that a policy can be a plug-in in any language: a shared library that defines hl_policy_plugin, loaded
 * with
 * `--policy ./mine.so`. docs/policies.md builds one from an empty file; hinterland/policy.hpp spares a C++ policy
 * what they all have in common.
 */
#ifndef HINTERLAND_POLICY_H
#define HINTERLAND_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HL_POLICY_ABI_VERSION 3u

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

/* How the runtime knows that a page which is there was used. Most uses of such a page nobody sees. */
typedef enum hl_access {
  HL_ACCESS_WRITE = 0, /* the first write to a page that was unchanged: a protection fault */
  HL_ACCESS_ANY = 1    /* a use in a list of all uses (src/policy/cache.hpp); never in a live program */
} hl_access;

/* What the runtime offers a policy. Valid for the life of the process, so a policy may keep a copy. */
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
  void* runtime; /* for the calls of this struct */
  /* The text behind the colon of `--policy NAME:TEXT`; "" without one. Only to be read in create(). */
  const char* settings;
  /* How many pages may be local now; changes when the budget is tuned. */
  uint64_t (*capacity)(void* runtime);
  /* Where a page lies: the places of neighbours in the program's memory follow each other. */
  uint64_t (*place_of)(void* runtime, hl_page page);
  /* The page at a place; HL_NO_PAGE where nothing was ever used. */
  hl_page (*page_at)(void* runtime, uint64_t place);
} hl_policy_env;

typedef enum hl_mapping_kind {
  HL_MAPPING_MMAP = 0,  /* the program's own: mmap, mremap */
  HL_MAPPING_HEAP = 1,  /* for malloc and its like, which cut it into objects */
  HL_MAPPING_REGION = 2 /* hinterland/region.h */
} hl_mapping_kind;

typedef struct hl_mapping {
  uint64_t place; /* of its first page, as of hl_policy_env::place_of */
  uint64_t pages;
  hl_mapping_kind kind;
  const char* tag; /* of a region that was created with one; else "". Only to be read in the call */
} hl_mapping;

/* What a policy shows of itself, in `hinterland stat PID` and its JSON. */
#define HL_POLICY_FIGURES_MAX 8u
typedef struct hl_policy_figure {
  char name[24]; /* ends with a NUL; the unit at its end, as in pages_in or waited_ns */
  uint64_t value;
} hl_policy_figure;
typedef struct hl_policy_report {
  char text[128]; /* one line, ends with a NUL; or "" */
  uint32_t count; /* of the figures */
  hl_policy_figure figures[HL_POLICY_FIGURES_MAX];
} hl_policy_report;

/* hl_policy_ops::flags: an unchanged page that leaves is gone at once. Without it the runtime may keep such a page
 * for a while outside of the program's view, where that pays, so that it comes back without being fetched. */
#define HL_POLICY_LEAVES_AT_ONCE 1u

/* Returned by missed(): the runtime reads ahead as it does without the policy. */
#define HL_OWN_READ_AHEAD UINT32_MAX

/* What may be left out where an hl_policy_ops is written down, in C++ as in C. */
#ifdef __cplusplus
#define HL__OPTIONAL \
  {                  \
  }
#else
#define HL__OPTIONAL
#endif

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

  /* What follows may be NULL or 0, or left out at the end: a plug-in's struct may be shorter than this one. */

  /* A page that the policy holds was used. */
  void (*accessed)(void* state, hl_page page, hl_access how) HL__OPTIONAL;
  /* The program faults on a page that is not there; arrived() follows, after room was made for it. Fills `next` with
   * up to `max` pages that are worth bringing as well, the most urgent first, and returns how many, or
   * HL_OWN_READ_AHEAD. Pages that are there, or were never used, are passed over; so are all when there is no room to
   * spare. One of 16 is withheld to see whether the program wants it: where less than a quarter of these are wanted
   * before as many pages have come as local memory holds, fewer come with each miss, down to one. */
  uint32_t (*missed)(void* state, hl_page page, hl_page* next, uint32_t max) HL__OPTIONAL;
  uint32_t flags HL__OPTIONAL; /* HL_POLICY_..., or 0 */
  /* Time goes by: while pages are taken out, some ten times a second in a program that is busy, once a second in one
   * that is not. now_ns: of a clock that never goes back; in a replay, the trace's. */
  void (*tick)(void* state, uint64_t now_ns) HL__OPTIONAL;
  /* Fills in a report, which is zeroed. After each tick. Of the process's policy alone, not of regions'. */
  void (*report)(void* state, hl_policy_report* out) HL__OPTIONAL;
  /* The program has got addresses, or has grown a mapping by them: nothing is there yet. Mappings that follow each
   * other in memory, or that replace older ones, are told of one by one. Of a region's the region's policy is told,
   * of all others the process's. Not in a replay: a trace has no mappings. */
  void (*mapped)(void* state, const hl_mapping* mapping) HL__OPTIONAL;
  /* Nothing is mapped there any more. May name parts of mappings, several at once, and places that were not told of.
   */
  void (*unmapped)(void* state, uint64_t place, uint64_t pages) HL__OPTIONAL;
  /* A page came in for the first reason of the four (not by second chance, and not because it could not be taken).
   * 0: it need not stay. Then arrived() is not called; it is among the first to leave, soon, without being chosen.
   * Else, and for all of more than some thousand such pages at a time, arrived() follows. */
  int (*admits)(void* state, hl_page page, hl_arrival why) HL__OPTIONAL;
  /* A hint of the program's names a page that is not there, and begins to bring it: as missed(), of the pages that
   * are worth bringing besides those of the hint itself (its size and its rdahead), and without its last answer. */
  uint32_t (*hinted)(void* state, hl_page page, hl_page* next, uint32_t max) HL__OPTIONAL;
  /* Of a page that choose_victims() returned, before it leaves: whether it is likely to be wanted again so soon that
   * it is worth a frame, which is local memory outside of the program's view. 1: it stays in one until an eighth of
   * local memory has gone through frames after it; touched before, it is back without being fetched
   * (HL_ARRIVAL_REFAULT). 0: it is gone as soon as its far copy is there, and so is any page whose device answers at
   * once: to fetch it costs little more than to take it out of a frame. Without this call the runtime decides:
   * changed pages stay for a while in the frames that they are written from, others where it sees that this pays. */
  int (*worth_a_frame)(void* state, hl_page page) HL__OPTIONAL;
} hl_policy_ops;

/* What a plug-in defines:
 *   HL_POLICY_PLUGIN = {HL_POLICY_ABI_VERSION, "mine", "what it does", create, arrived, ...};
 */
#ifdef __cplusplus
#define HL_POLICY_PLUGIN extern "C" __attribute__((visibility("default"))) const hl_policy_ops hl_policy_plugin
#else
#define HL_POLICY_PLUGIN __attribute__((visibility("default"))) const hl_policy_ops hl_policy_plugin
#endif

#ifdef __cplusplus
}
#endif
#endif
