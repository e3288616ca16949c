// Far memory keeps out of the kernel's same-page merging (KSM; of a whole process since Linux 6.4).
//
// KSM puts one page that may only be read in the place of equal ones. It forgets that a userfaultfd had
// write-protected them (Linux 6.18): the program then writes a copy of its own,
// nobody hears of it, and the page leaves as if it were unchanged. Whether pages are merged is the kernel's affair,
// so nothing is lost by doing without (docs/adr/0084-far-memory-is-not-merged.md).
#pragma once

#include <optional>

#include "base/error.hpp"

namespace hinterland::same_page_merging {

// Takes the process out of it, where somebody has put it in (MemoryKSM= of systemd, which programs inherit): pages
// that are merged are copied, which takes time and memory, or fails. Once, before there is far memory.
Status leave();

// What prctl(2) returns to the program for PR_SET_MEMORY_MERGE and PR_GET_MEMORY_MERGE: 0 or 1, or -errno. Its wish
// is kept, for children too, and not told to the kernel. Nothing where the option is another, or the kernel does not
// know it. Any thread; does not block.
std::optional<int> answer(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

}  // namespace hinterland::same_page_merging
