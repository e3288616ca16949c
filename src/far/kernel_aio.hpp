// Linux AIO's system calls and its ring of completions. Here and not from libaio: its static library cannot become
// part of a shared one that has a version script. Each returns -errno when it fails.
#pragma once

#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <span>

namespace hinterland::far::aio {

inline long result_of(long result) { return result < 0 ? -errno : result; }

// `context` must be 0 before.
inline long setup(unsigned transfers, aio_context_t& context) {
  return result_of(syscall(SYS_io_setup, transfers, &context));
}

// Waits for what is in flight.
inline long destroy(aio_context_t context) { return result_of(syscall(SYS_io_destroy, context)); }

// How many of them it took. -errno is about the first alone.
inline long submit(aio_context_t context, std::span<iocb*> transfers) {
  return result_of(syscall(SYS_io_submit, context, static_cast<long>(transfers.size()), transfers.data()));
}

// At least `least` of them, or what has come after `limit`.
inline long gather(aio_context_t context, long least, std::span<io_event> events, timespec limit) {
  return result_of(
      syscall(SYS_io_getevents, context, least, static_cast<long>(events.size()), events.data(), &limit));
}

// Whether gather() would find something, without a system call: a context is the address of a ring of completions,
// those between head and tail (since Linux 3.11; it begins with: id, slots, head, tail).
inline bool completions_wait(aio_context_t context) {
  const auto* ring = reinterpret_cast<const unsigned*>(context);
  // acquire: pairs with the kernel's barrier between a completion and the tail that shows it; only we move the head
  return __atomic_load_n(&ring[3], __ATOMIC_ACQUIRE) != ring[2];
}

}  // namespace hinterland::far::aio
