#include "preload/ending.hpp"

#include "base/stats.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland::ending {

bool is_own_process() { return mode() == Mode::far && raw::call(SYS_getpid) == stat_page()->pid; }

void finish() {
  pager().leave_device();
  close_stat_page();
}

void finish_if_own() {
  if (is_own_process()) finish();
}

}  // namespace hinterland::ending
