// What the runtime offers to this library: in signal mode, and where it cannot see what the kernel has pinned
// (docs/adr/0078-pins-without-move.md). The runtime room fills it in (runtime/self_paging_entry.cpp); the library
// finds it when it is loaded, or does nothing.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct hl_self_paging {
  // The window of far memory; size 0: nothing is to be done here, and nothing below may be called.
  std::uintptr_t base;
  std::size_t size;
  // Faults are served by signal: all that system calls use is held. Else it is what they may pin.
  bool by_signal;
  // What the kernel has pinned stays by itself. Else it is held for as long as the kernel may have it.
  bool sees_pins;
  // Pager::hold_for_call() and let_go(): the bytes stay where the kernel finds them, and may be written by it if
  // `write`. True: all of them are there. Keep errno.
  bool (*hold)(std::uintptr_t address, std::size_t length, bool write);
  void (*let_go)(std::uintptr_t address, std::size_t length);
  // paging/bus_signal.hpp
  int (*change_action)(const struct sigaction* action, struct sigaction* old);
  int (*block)(int blocked);
  int (*is_blocked)();
  void (*use_stack)(void* base, std::size_t bytes);
  void (*cancel_at_once)(int at_once);
};

// Exported by libhinterland-preload.so and libhinterland.so.
extern struct hl_self_paging hl_self_paging __attribute__((weak, visibility("default")));
// Exported by libhinterland-signal.so, so that the runtime finds out whether it is there.
extern const int hl_signal_library __attribute__((weak, visibility("default")));
// The same: a system call by number, with what its arguments lead to held while it runs. Its result, or -errno.
long hl_held_system_call(long number, const long (&arguments)[6]) __attribute__((weak, visibility("default")));
// The same: where the library makes its own system calls from now on, under --catch (base/raw_call.hpp). Once, while
// there is one thread. A call of its own that was caught would have its frame written over that of the fault which is
// just being served, on the alternate stack.
void hl_make_calls_at(std::uintptr_t gate, std::uintptr_t handler_end) __attribute__((weak, visibility("default")));

}  // extern "C"

namespace hinterland {

inline bool holds_pins() { return &hl_self_paging != nullptr && hl_self_paging.size != 0; }
inline bool self_paging() { return holds_pins() && hl_self_paging.by_signal; }
inline bool is_in_window(const void* pointer) {
  return holds_pins() && reinterpret_cast<std::uintptr_t>(pointer) - hl_self_paging.base < hl_self_paging.size;
}
// By signal, where no system call may find it missing.
inline bool is_far(const void* pointer) { return self_paging() && is_in_window(pointer); }

}  // namespace hinterland
