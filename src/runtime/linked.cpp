// libhinterland.so: the runtime for programs that link it. Only their regions are far, so that nothing of the program
// is interposed; it starts with the first region.
#include <errno.h>

#include "base/mutex.hpp"
#include "runtime/entry.hpp"
#include "runtime/regions.hpp"
#include "runtime/sites.hpp"
#include "runtime/start.hpp"

namespace hinterland::hint {

bool sites_wanted() { return true; }  // regions may come

namespace {

Mutex g_start_mutex;

}  // namespace

Result<Pager*> pager_for_regions() {
  LockGuard guard(g_start_mutex);
  if (Pager::current() != nullptr) return Pager::current();
  // A start that failed is tried again with the next region: the server may be there by then.
  return start_pager(program_invocation_short_name, Take::at_once, begin);
}

}  // namespace hinterland::hint
