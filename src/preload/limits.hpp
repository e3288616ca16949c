// RLIMIT_AS and RLIMIT_DATA, as the program sets them for itself.
//
// To the kernel the window for far memory and the runtime's tables count as the program's: a limit that is wide for
// the program alone would refuse every mapping from then on. So the kernel is told one that is higher by kOffset, and
// what the program set is kept here (ADR 0038).
#pragma once

#include <cstddef>
#include <cstdint>

struct rlimit;

namespace hinterland::limits {

// Before the runtime takes memory, and after it: what is between is the runtime's share. The second also finds limits
// that an ancestor under Hinterland set.
void note_before_start();
void note_after_start();

// Whether the program may have so many more bytes, by the limits that it set. `counts_as_data`: private and writable.
bool allow(std::size_t bytes, bool counts_as_data);

// Whether there is a limit to keep: allow() says yes to everything without one.
bool are_set();

// As the system call prlimit64 for the program: 0 or -errno.
int change(int process, int resource, const struct rlimit* wanted, struct rlimit* before);

}  // namespace hinterland::limits
