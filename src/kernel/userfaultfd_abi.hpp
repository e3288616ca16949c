// Interface facts of userfaultfd and friends that Debian 12's kernel headers (6.1) do not have yet.
#pragma once

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>

namespace hinterland::abi {

inline constexpr __u64 kFeatureExactAddress = 1u << 11;      // 5.18
inline constexpr __u64 kFeaturePoison = 1u << 14;            // 6.6
inline constexpr __u64 kFeatureWpAsync = 1u << 15;           // 6.7
inline constexpr __u64 kFeatureMove = 1u << 16;              // 6.8
inline constexpr __u64 kFeatureReadWriteProtect = 1u << 17;  // 7.2: "RWP"

struct uffdio_move {
  __u64 dst;
  __u64 src;
  __u64 len;
  __u64 mode;
  __s64 move;
};
inline constexpr __u64 kMoveDontWake = 1u << 0;
inline constexpr __u64 kMoveAllowSourceHoles = 1u << 1;

struct uffdio_poison {
  struct uffdio_range range;
  __u64 mode;
  __s64 updated;
};

struct uffdio_rwprotect {
  struct uffdio_range range;
  __u64 mode;
};
inline constexpr __u64 kRegisterReadWriteProtect = 1u << 3;  // of a mapping; not with write protection
inline constexpr __u64 kReadWriteProtect = 1u << 0;          // else it is lifted

inline constexpr unsigned long kIoctlReadWriteProtect = _IOWR(0xAA, 0x09, struct uffdio_rwprotect);
inline constexpr unsigned long kIoctlMove = _IOWR(0xAA, 0x05, struct uffdio_move);
inline constexpr unsigned long kIoctlPoison = _IOWR(0xAA, 0x08, struct uffdio_poison);
inline constexpr unsigned long kIoctlNewDescriptor = _IO(0xAA, 0x00);  // on /dev/userfaultfd (6.1)

// "This process" where a pidfd is asked for (6.14); older kernels want a real one.
inline constexpr int kPidfdSelfThreadGroup = -10001;

// Bits of a /proc/PID/pagemap entry.
inline constexpr __u64 kPagemapPresent = 1ull << 63;
inline constexpr __u64 kPagemapSwapped = 1ull << 62;

// PAGEMAP_SCAN, on the same file (6.7): which pages of a range are of some categories.
struct page_region {
  __u64 start, end, categories;
};
struct pm_scan_arg {
  __u64 size, flags;
  __u64 start, end, walk_end;
  __u64 vec, vec_len, max_pages;
  __u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
inline constexpr __u64 kPageIsPresent = 1ull << 3;
inline constexpr __u64 kPageIsSwapped = 1ull << 4;
inline constexpr unsigned long kIoctlPagemapScan = _IOWR('f', 16, struct pm_scan_arg);

}  // namespace hinterland::abi
