// What the signal library finds of the runtime (signal/self_paging.hpp).
#include "signal/self_paging.hpp"

#include <cerrno>

#include "base/inside.hpp"
#include "paging/bus_signal.hpp"
#include "paging/pager.hpp"
#include "runtime/entry.hpp"

namespace hinterland::hint {
namespace {

int hold(std::uintptr_t address, std::size_t length, int write) {
  InsideRuntime inside;
  int saved_errno = errno;
  bool there = Pager::current()->hold_for_call(address, length, write != 0);
  errno = saved_errno;
  return there ? 1 : 0;
}

void let_go(std::uintptr_t address, std::size_t length) {
  InsideRuntime inside;
  int saved_errno = errno;
  Pager::current()->let_go_after_call(address, length);
  errno = saved_errno;
}

}  // namespace
}  // namespace hinterland::hint

// C linkage: self_paging.hpp declares it.
__attribute__((visibility("default"))) constinit struct hl_self_paging hl_self_paging = {
    .base = 0,
    .size = 0,
    .hold = hinterland::hint::hold,
    .let_go = hinterland::hint::let_go,
    .change_action = hinterland::bus_signal::change_action,
    .block = [](int blocked) { return hinterland::bus_signal::block(blocked != 0) ? 1 : 0; },
    .is_blocked = [] { return hinterland::bus_signal::is_blocked() ? 1 : 0; },
    .use_stack = hinterland::bus_signal::use_stack,
};

void hinterland::hint::begin_self_paging() {
  Pager& pager = *Pager::current();
  hl_self_paging.base = pager.window_base();
  hl_self_paging.size = pager.window_bytes();
}
