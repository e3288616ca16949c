// clone and clone3 that copy the memory, as fork does it.
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hinterland::forking {

void resolve_clone();

// Whether a call with these flags makes such a copy, and can have far memory in it.
bool copies_memory(std::uint64_t flags);
// As the system calls (which take no stack here), but -1 with errno.
pid_t fork_by_clone(std::uint64_t flags, int* parent_id, int* child_id);
pid_t fork_by_clone3(const clone_args* arguments, std::size_t size);

}  // namespace hinterland::forking
