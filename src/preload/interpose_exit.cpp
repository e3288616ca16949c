// Ways out of the process that run no exit handlers: the far device is told, and the figures are closed.
#include <unistd.h>

#include <cstdlib>

#include "base/stats.hpp"
#include "preload/ending.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

#ifdef HINTERLAND_COVERAGE
extern "C" void __gcov_dump();
#endif

namespace {

[[noreturn]] void leave(int status) {
  using namespace hinterland;
  bool own = ending::is_own_process();
  if (own) ending::finish();
#ifdef HINTERLAND_COVERAGE
  if (own) __gcov_dump();  // forked children and programs that end here would leave no trace in the figures
#endif
  for (;;) raw::call(SYS_exit_group, status);
}

}  // namespace

HL_INTERPOSED void _exit(int status) { leave(status); }
HL_INTERPOSED void _Exit(int status) noexcept { leave(status); }
