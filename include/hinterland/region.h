/* Regions: far memory that a program asks for itself, where it is not all of its memory that should be far.
 *
 *     struct hl_region region;
 *     int error = hl_region_create(&region, size, NULL);
 *     ... region.data, region.size ...
 *     hl_region_destroy(&region);
 *
 * A region reads as zeros until it is written. Any thread may use it; hints (hint.h) work on it. Containers of the
 * standard library: hinterland/region.hpp.
 *
 * Under `hinterland run` a region lies beside the rest of the program's memory and shares its budget and, unless it
 * names another, its device. A
 * program that links libhinterland.so (pkg-config hinterland-runtime) has far memory in its regions alone; its budget
 * and device are those of the variables HINTERLAND_LOCAL, HINTERLAND_FAR and so on (man hinterland-run), read when it
 * creates its first region. A forked child of such a program has no regions (ENOTSUP). Without either, a region is
 * ordinary memory.
 *
 * C11 and C++ for GCC and Clang on x86-64.
 */
#ifndef HINTERLAND_REGION_H
#define HINTERLAND_REGION_H

/* For C as well. NOLINTBEGIN(modernize-use-nullptr,modernize-redundant-void-arg) */
#include <errno.h>
#include <sys/mman.h>

#include "hinterland/hint.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hl_region {
  void* data;
  size_t size;     /* bytes, as asked for, rounded up to 64 KiB */
  uint64_t inside; /* the runtime's */
};

struct hl_region_options {
  /* Bytes of the budget. While the region has no more than that local, its pages leave last; those beyond it leave
   * first. 0: all of them leave first. HL_SHARE_COMMON: as all other memory of the program. All shares together are
   * at most half of the budget. */
  size_t share;
  int32_t rdahead;    /* pages read ahead of faults and sequential hints; HL_RDAHEAD_DEFAULT: as the program's */
  const char* policy; /* which of the region's pages leave: a name as of `hinterland run --policy`; NULL: the same */
  /* Where its pages go: a URL as of `hinterland run --far`; NULL: the program's device. Regions that name the same
   * URL share a device, which stays open until the program ends. It has the program's key file and time limit. While
   * it is opened, other threads that map memory wait. Since version 3 of the runtime. */
  const char* device;
  const char* tag; /* what its policy is told that it is for (hinterland/policy.h: hl_mapping); NULL: nothing */
};
#define HL_SHARE_COMMON ((size_t)-1)
#define HL_RDAHEAD_DEFAULT (-1)

/* 0, or an errno, and then the region is {NULL, 0}; hl_region_error() says more.
 *   EINVAL  size 0, a read-ahead below -1, a policy that does not exist, or a device's URL that is wrong
 *   ENOMEM  no addresses or memory for it
 *   EDQUOT  more than half of the budget would be in shares
 *   ENOSPC  more than 31 regions with a share, a read-ahead, a policy or a device of their own; more than 8 devices,
 *           the program's included; or a device without the space that its URL asks for
 *   EPERM   this process may not handle its own page faults: `hinterland doctor` says what would allow it
 *   ENOTSUP a forked child of a program that links the runtime; or a device, and a library before version 3
 *   EBUSY   in a signal handler that interrupted the runtime
 * or what was wrong with the settings or the device: as ETIMEDOUT of a server that does not answer. `options` may be
 * NULL: common share, default read-ahead. */
HL__INLINE int hl_region_create(struct hl_region* region, size_t size, const struct hl_region_options* options) {
  static const struct hl_region_options common = {HL_SHARE_COMMON, HL_RDAHEAD_DEFAULT, NULL, NULL, NULL};
  const struct hl_runtime* runtime = hl__runtime();
  if (options == NULL) options = &common;
  region->data = NULL;
  region->size = 0;
  region->inside = 0;
  if (runtime->abi_version >= 3) return runtime->region_create_sized(region, size, options, sizeof *options);
  if (runtime->abi_version == 2 && options->device != NULL) return ENOTSUP;
  if (runtime->abi_version == 2) return runtime->region_create(region, size, options);
  if (size == 0 || size > (size_t)-1 - 65535 || options->rdahead < -1) return EINVAL;
  size = (size + 65535) / 65536 * 65536;
  /* MAP_ANONYMOUS | MAP_NORESERVE, names that strict C11 does not have */
  region->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | 0x4020, -1, 0);
  if (region->data == MAP_FAILED) {
    region->data = NULL;
    return errno;
  }
  region->size = size;
  return 0;
}

/* Its memory is gone; a thread that waits for one of its pages gets SIGSEGV, as with munmap. 0, or an errno as
 * munmap's. A region that is {NULL, 0} may be destroyed. */
HL__INLINE int hl_region_destroy(struct hl_region* region) {
  const struct hl_runtime* runtime = hl__runtime();
  int error = 0;
  if (region->data == NULL) return 0;
  if (runtime->abi_version >= 2)
    error = runtime->region_destroy(region);
  else if (munmap(region->data, region->size) != 0)
    error = errno;
  if (error == 0) {
    region->data = NULL;
    region->size = 0;
  }
  return error;
}

/* Why hl_region_create() failed last, on any thread, and what to do about it; "" when it never did. Valid until the
 * next failure. */
HL__INLINE const char* hl_region_error(void) {
  const struct hl_runtime* runtime = hl__runtime();
  return runtime->abi_version >= 2 ? runtime->region_error() : "";
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-nullptr,modernize-redundant-void-arg) */
#endif
