// Ways out of the process that run no exit handlers: the figures are closed first.
#include <unistd.h>

#include <cstdlib>

#include "base/stats.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

#ifdef HINTERLAND_COVERAGE
extern "C" void __gcov_dump();
#endif

namespace {

[[noreturn]] void leave(int status) {
  using namespace hinterland;
  // A vfork child has its parent's memory, and must not end its parent's figures.
  bool own = mode() == Mode::far && raw::call(SYS_getpid) == stat_page()->pid;
  if (own) close_stat_page();
#ifdef HINTERLAND_COVERAGE
  if (own) __gcov_dump();  // forked children and programs that end here would leave no trace in the figures
#endif
  for (;;) raw::call(SYS_exit_group, status);
}

}  // namespace

HL_INTERPOSED void _exit(int status) { leave(status); }
HL_INTERPOSED void _Exit(int status) noexcept { leave(status); }
