#include "preload/ending.hpp"

#include "base/stats.hpp"
#include "preload/catching.hpp"
#include "preload/own_calls.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland::ending {

bool is_own_process() { return mode() == Mode::far && raw::call(SYS_getpid) == stat_page()->pid; }

void finish() {
  own_calls::report(catching::is_on());
  pager().leave_device();
  close_stat_page();
}

void finish_if_own() {
  if (is_own_process()) finish();
}

}  // namespace hinterland::ending
