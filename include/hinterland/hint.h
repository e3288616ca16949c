/* Hints: say, a line before an access, which memory it will use. A page that is far is then fetched without a trap,
 * and with what comes next; a page that is there costs a few instructions. (Eden 3.1; docs/hints.md)
 *
 *     hl_read(p);                             the next line reads *p
 *     hl_write(p);                            the next line writes *p
 *     hl_seq_read(p); hl_seq_write(p);        the same, of a p that goes through memory in order
 *     hl_hint(p, .mut = 1, .size = n, .rdahead = 8);      all there is to say (C only; C++: hinterland/hint.hpp)
 *     hl_prefetch(p, n);                      it will be read later: returns without waiting
 *
 * A hint is never an access: any address will do, and a wrong hint costs time, not correctness. Nothing has to be
 * linked: without Hinterland a hint is a branch that is never taken, and under `hinterland run` it works. Every form
 * is an expression of type void and evaluates its arguments once. Any thread may hint, a signal handler too (where it
 * interrupted the runtime, the hint returns at once). A hint blocks until its pages are there, keeps errno, and needs
 * 32 KiB of stack.
 *
 * With HL_NO_HINTS defined, hints compile to nothing, prefetch and cold among them: for measuring what they bring.
 * Arguments are still evaluated; pin, unpin and discard, on which a program may rely, stay.
 *
 * C11 and C++ for GCC and Clang on x86-64.
 */
#ifndef HINTERLAND_HINT_H
#define HINTERLAND_HINT_H

/* For C as well. NOLINTBEGIN(modernize-use-nullptr,modernize-redundant-void-arg) */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hl_region;
struct hl_region_options;
struct hl_computation;
struct hl_operator;
struct hl_piece;
struct hl_composed_page;
struct hl_composed_part;
struct hl_patched_page;
struct hl_patch;

/* What the runtime shows to hinted programs: the whole interface between them, for other languages as well (examples/
 * python, examples/rust). The addresses are filled in when paging begins, `size` last; they never change again.
 * Fields are only ever added, at the end, and abi_version says which are there. */
struct hl_runtime {
  uint32_t abi_version; /* 7 */
  uint32_t reserved;
  uintptr_t base;           /* of the addresses that may be far */
  uintptr_t size;           /* of these, bytes; 0 until paging has begun: nothing is far */
  const unsigned char* map; /* a byte a page of 4 KiB: HL_THERE, HL_WRITABLE, HL_ASKED. It may be out of date. */
  void (*hint)(const void* address, size_t size, int32_t read_ahead, uint32_t flags);
  int (*pin)(const void* address, size_t size);
  int (*unpin)(const void* address, size_t size);
  int (*discard)(void* address, size_t size);
  /* from version 2 on; hinterland/region.h */
  void (*cold)(const void* address, size_t size);
  int (*region_create)(struct hl_region* region, size_t size, const struct hl_region_options* options);
  int (*region_destroy)(struct hl_region* region);
  const char* (*region_error)(void);
  /* From version 3 on. As region_create, which knows no more of the options than share, rdahead and policy; with the
   * size of the caller's struct hl_region_options. Fields that the library does not know must be zero. */
  int (*region_create_sized)(struct hl_region* region, size_t size, const struct hl_region_options* options,
                             size_t options_size);
  /* From version 4 on; hinterland/offload_pages.hpp: what devices compute on far pages. At most HL_COMPUTE_MAX
   * results. */
  int (*compute)(const struct hl_computation* what, const void* address, size_t count, const size_t* indices,
                 void* results, unsigned char* done);
  /* From version 5 on; hinterland/operator.h: an operator on far pieces, at most HL_COMPUTE_MAX. done[i] is set where
   * results[i] (result_bytes each) was computed by a server that has the operator; the others are the caller's. Not 0
   * where the arguments make no sense. */
  int (*apply)(const struct hl_operator* which, const void* argument, const struct hl_piece* pieces, size_t count,
               void* results, unsigned char* done);
  /* From version 6 on; hinterland/offload_pages.hpp: pages that devices compose of parts of far ones and keep, at
   * most HL_COMPUTE_MAX of them, and as many parts. done[i] is set for each page that holds what its parts choose
   * now; the others are as before, and the caller's to write. Not 0 where no device does that, or where the arguments
   * make no sense; then nothing is changed. */
  int (*compose)(uint32_t element_bytes, const struct hl_composed_page* pages, size_t count,
                 const struct hl_composed_part* parts, size_t parts_count, unsigned char* done);
  /* From version 7 on; hinterland/offload_pages.hpp: far pages of which devices change some elements, of 4 or 8
   * bytes, and pages that they fill; at most HL_COMPUTE_MAX pages and HL_PATCHES_MAX elements. done[i] is set for
   * each page that is as it is to be; the others are as before, and the caller's to write. Not 0 where no device does
   * that, or where the arguments make no sense; then nothing is changed. */
  int (*patch)(uint32_t element_bytes, const struct hl_patched_page* pages, size_t count,
               const struct hl_patch* patches, size_t patches_count, unsigned char* done);
};
#define HL_COMPUTE_MAX 1024u

#define HL_THERE 1u    /* the page is there */
#define HL_WRITABLE 2u /* and can be written without a fault */
#define HL_ASKED 4u    /* it was there, and the runtime wants to hear of the next hint: neither of the above is set */
/* Flags of hl_runtime.hint. The priority is added, shifted. */
#define HL_HINT_WRITE 1u
#define HL_HINT_SEQUENTIAL 2u /* read-ahead as long as for faults */
#define HL_HINT_NO_WAIT 4u    /* returns while pages are on their way */
#define HL_HINT_PRIORITY_SHIFT 8

/* Exported by libhinterland-preload.so; absent in a program that runs without it. */
extern struct hl_runtime hl_runtime __attribute__((weak));

/* --- inside: what the hints below are made of ------------------------------------------------------------------ */

#define HL__INLINE static inline __attribute__((always_inline, unused))
#define HL__PAGE_SHIFT 12
#define HL__PAGE 4096u

/* The runtime, or one without far memory. In assembly for two reasons. A loop looks once, because the compiler does
 * not see a case to decide in each round; and in programs that are not position-independent, the linker would resolve
 * a weak symbol to 0 for good, where the table of addresses that is filled when the program starts finds the
 * preloaded one. */
HL__INLINE const struct hl_runtime* hl__runtime(void) {
  static const struct hl_runtime none = {0,    0,    0,    0,    NULL, NULL, NULL, NULL, NULL,
                                         NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  const struct hl_runtime* runtime;
  __asm__(
      ".weak hl_runtime\n\t"
      "movq hl_runtime@GOTPCREL(%%rip), %0\n\t"
      "testq %0, %0\n\t"
      "cmovzq %1, %0"
      : "=&r"(runtime)
      : "r"(&none)
      : "cc");
  return runtime;
}

/* The page of the address may be far and is not known to be there as needed. Plain loads: the map may be out of date
 * in any case, and that is harmless. */
HL__INLINE int hl__is_missing(uintptr_t address, unsigned needed) {
  const struct hl_runtime* runtime = hl__runtime();
  uintptr_t offset = address - runtime->base;
  return __builtin_expect(offset < runtime->size, 1) &&
         __builtin_expect((runtime->map[offset >> HL__PAGE_SHIFT] & needed) == 0, 0);
}

static __attribute__((noinline, cold, unused)) void hl__ask(uintptr_t address, size_t size, int32_t read_ahead,
                                                            uint32_t flags) {
  hl__runtime()->hint((const void*)address, size, read_ahead, flags);
}

#ifdef HL_NO_HINTS
#define HL__COMPILED_OUT 1
#else
#define HL__COMPILED_OUT 0
#endif

HL__INLINE void hl__touch(uintptr_t address, size_t size, int32_t read_ahead, uint32_t flags) {
  if (HL__COMPILED_OUT) return;
  unsigned needed = (flags & HL_HINT_WRITE) != 0 ? HL_WRITABLE : HL_THERE;
  uintptr_t last = address + size - (size != 0);
  /* What ends on the page where it begins is looked at once. Of three pages and more, the runtime looks at those
   * between. */
  if (hl__is_missing(address, needed) || ((address ^ last) >= HL__PAGE && hl__is_missing(last, needed)) ||
      (size > HL__PAGE && hl__runtime()->size != 0))
    hl__ask(address, size, read_ahead, flags);
}

/* Another page than last time. A call, so that the same page costs no more than a comparison. */
static __attribute__((noinline, unused)) void hl__moved(uintptr_t address, size_t size, int32_t read_ahead,
                                                        uint32_t flags, uintptr_t* last) {
  uintptr_t page = address >> HL__PAGE_SHIFT;
  intptr_t step = (intptr_t)(page - *last);
  *last = page;
  /* The runtime knows how far it is worth to read ahead; we know which way. A jump starts anew. */
  if (read_ahead == 0 && step > 0 && step <= 16) read_ahead = INT32_MAX;
  if (read_ahead == 0 && step < 0 && step >= -16) read_ahead = -INT32_MAX;
  hl__touch(address, size, read_ahead, flags | HL_HINT_SEQUENTIAL);
}

/* `last` is the page that this place in the program hinted before, on this thread. */
HL__INLINE void hl__touch_in_order(uintptr_t address, size_t size, int32_t read_ahead, uint32_t flags,
                                   uintptr_t* last) {
  if (HL__COMPILED_OUT) return;
  if (__builtin_expect(address >> HL__PAGE_SHIFT != *last, 0)) hl__moved(address, size, read_ahead, flags, last);
}

#define HL__IN_ORDER(address_, flags_)                                    \
  __extension__({                                                         \
    static __thread uintptr_t hl__last;                                   \
    hl__touch_in_order((uintptr_t)(address_), 1, 0, (flags_), &hl__last); \
  })

/* --- hints ------------------------------------------------------------------------------------------------------ */

HL__INLINE void hl_read(const volatile void* address) { hl__touch((uintptr_t)address, 1, 0, 0); }
HL__INLINE void hl_write(const volatile void* address) { hl__touch((uintptr_t)address, 1, 0, HL_HINT_WRITE); }

/* What is remembered between two calls belongs to the place in the program and to the thread. */
#define hl_seq_read(address_) HL__IN_ORDER(address_, 0)
#define hl_seq_write(address_) HL__IN_ORDER(address_, HL_HINT_WRITE)

/* Starts fetching what will be read later, and returns; the hint or the access that comes then waits for what is
 * still on its way. A device that answers at once (mem:, zmem:) is not worth waiting for: there the pages are there
 * already. */
HL__INLINE void hl_prefetch(const volatile void* address, size_t size) {
  hl__touch((uintptr_t)address, size, 0, HL_HINT_NO_WAIT);
}

#ifndef __cplusplus
struct hl_hint {
  const volatile void* address;
  size_t size;     /* bytes that will be used, from the address on; 0 counts as 1 */
  int32_t rdahead; /* pages to fetch with them, behind the range, or, below zero, before it */
  int mut;         /* they will be written */
  int seq;         /* the address goes through memory in order */
  int ev_prio;     /* 0 (keep) to 15 (evict soon), for --policy priority */
  int hl__end;
};

#define hl_hint(...) HL__HINT(__VA_ARGS__, .hl__end = 0)
#define HL__HINT(address_, ...)                                                \
  __extension__({                                                              \
    static __thread uintptr_t hl__last;                                        \
    hl__hint((struct hl_hint){.address = (address_), __VA_ARGS__}, &hl__last); \
  })

HL__INLINE void hl__hint(struct hl_hint hint, uintptr_t* last) {
  uint32_t flags = (hint.mut ? HL_HINT_WRITE : 0u) | ((uint32_t)hint.ev_prio & 15u) << HL_HINT_PRIORITY_SHIFT;
  if (hint.seq)
    hl__touch_in_order((uintptr_t)hint.address, hint.size, hint.rdahead, flags, last);
  else
    hl__touch((uintptr_t)hint.address, hint.size, hint.rdahead, flags);
}
#endif

/* --- pages that stay, pages that may go --------------------------------------------------------------------------
 */

#define HL_PINS_NEST 62 /* hl_pin() */

/* Brings the pages of [address, address + size) and keeps them there until hl_unpin() of the same range: for memory
 * that a device or another process accesses, where a fault would fail. Pins nest, HL_PINS_NEST deep: what is pinned
 * deeper stays until the memory is given back. 0; or ENOMEM, and nothing is pinned, when this process would have more
 * than half of its budget pinned; EFAULT when the memory cannot be read;
 * EBUSY in a signal handler that interrupted the runtime. Memory that is not far can always be pinned. A fork's child
 * has the pins of its parent. */
HL__INLINE int hl_pin(const void* address, size_t size) {
  const struct hl_runtime* runtime = hl__runtime();
  return runtime->pin != NULL ? runtime->pin(address, size) : 0;
}
/* Only what was pinned. 0, or EBUSY as hl_pin(). */
HL__INLINE int hl_unpin(const void* address, size_t size) {
  const struct hl_runtime* runtime = hl__runtime();
  return runtime->unpin != NULL ? runtime->unpin(address, size) : 0;
}
/* The bytes will not be used soon: the pages that lie wholly in the range are the next to leave. A thousand are
 * remembered until they do; of more, nothing is noted. */
HL__INLINE void hl_cold(const volatile void* address, size_t size) {
  if (HL__COMPILED_OUT) return;
  const struct hl_runtime* runtime = hl__runtime();
  uintptr_t first = ((uintptr_t)address + HL__PAGE - 1) & ~(uintptr_t)(HL__PAGE - 1);
  uintptr_t end = ((uintptr_t)address + size) & ~(uintptr_t)(HL__PAGE - 1);
  if (runtime->abi_version >= 2 && first - runtime->base < runtime->size && first < end)
    runtime->cold((const void*)first, end - first);
}
/* The contents are no longer needed: the pages that lie wholly in the range are given up, local or far, and nothing
 * is written back. Reading before the next write gives either what was there or zeros. 0, or an errno. */
HL__INLINE int hl_discard(void* address, size_t size) {
  const struct hl_runtime* runtime = hl__runtime();
  return runtime->discard != NULL ? runtime->discard(address, size) : 0;
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-nullptr,modernize-redundant-void-arg) */
#endif
