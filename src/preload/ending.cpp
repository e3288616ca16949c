#include "preload/ending.hpp"

#include "base/stats.hpp"
#include "preload/catching.hpp"
#include "preload/own_calls.hpp"
#include "preload/raw.hpp"
#include "preload/seccomp.hpp"
#include "preload/state.hpp"

namespace hinterland::ending {

// Under a filter of the program's nothing is called, and the end is one without a word, as that of a program that was
// killed: the server frees its memory a moment later, and `run` takes its figures away.
bool is_own_process() {
  return !seccomp::is_filtered() && mode() == Mode::far && raw::call(SYS_getpid) == stat_page()->pid;
}

void finish() {
  own_calls::report(catching::is_on());
  pager().leave_device();
  close_stat_page();
}

void finish_if_own() {
  if (is_own_process()) finish();
}

}  // namespace hinterland::ending
