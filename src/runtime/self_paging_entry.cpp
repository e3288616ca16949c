// What the signal library finds of the runtime (signal/self_paging.hpp).
#include "signal/self_paging.hpp"

#include "paging/bus_signal.hpp"
#include "paging/pager.hpp"
#include "runtime/entry.hpp"

namespace hinterland::hint {
namespace {

Pager* g_pager = nullptr;  // before anything below is called

// Without a frame of their own, on what may be a small stack.
bool hold(std::uintptr_t address, std::size_t length, bool write) {
  return g_pager->hold_for_call(address, length, write);
}
void let_go(std::uintptr_t address, std::size_t length) { g_pager->let_go_after_call(address, length); }

}  // namespace
}  // namespace hinterland::hint

// C linkage: self_paging.hpp declares it.
__attribute__((visibility("default"))) constinit struct hl_self_paging hl_self_paging = {
    .base = 0,
    .size = 0,
    .by_signal = false,
    .sees_pins = true,
    .hold = hinterland::hint::hold,
    .let_go = hinterland::hint::let_go,
    .change_action = hinterland::bus_signal::change_action,
    .block = [](int blocked) { return hinterland::bus_signal::block(blocked != 0) ? 1 : 0; },
    .is_blocked = [] { return hinterland::bus_signal::is_blocked() ? 1 : 0; },
    .use_stack = hinterland::bus_signal::use_stack,
    .cancel_at_once = [](int at_once) { hinterland::bus_signal::cancel_at_once(at_once != 0); },
};

void hinterland::hint::begin_self_paging() {
  g_pager = Pager::current();
  hl_self_paging.base = g_pager->window_base();
  hl_self_paging.by_signal = g_pager->faults_by_signal();
  hl_self_paging.sees_pins = g_pager->sees_pins();
  hl_self_paging.size = g_pager->window_bytes();
}
