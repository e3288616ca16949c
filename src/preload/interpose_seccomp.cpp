#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "base/log.hpp"
#include "kernel/same_page_merging.hpp"
#include "paging/program_end.hpp"
#include "preload/held_for_call.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/seccomp.hpp"
#include "preload/state.hpp"

namespace {

using namespace hinterland;

thread_local bool t_strict = false;
std::atomic<bool> g_filtered{false};  // relaxed: once true it stays, in forked children, too

// A thread that ends by a call of its own can only be looked for by threads that are not confined.
void note_filter() {
  if (g_filtered.exchange(true, std::memory_order_relaxed) || !serves_program()) return;
  program_end::expect();
}

// In strict mode a thread can tell nobody that it ends.
void prepare_for_strict() {
  if (!serves_program()) return;
  t_strict = true;
  program_end::expect();
}

// What threads of ours call while a page comes. Each is tried in a way that the kernel itself refuses or that does
// nothing; a filter that ends the process for it would have done so at the next fault.
bool is_refused(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  long result = raw::call(number, a, b, c, d);
  return result == -EPERM || result == -EACCES || result == -ENOSYS;
}
bool refuses_runtime() {
  unsigned word = 0;
  return is_refused(SYS_ioctl, -1) || is_refused(SYS_read, -1) || is_refused(SYS_poll) ||
         is_refused(SYS_futex, reinterpret_cast<long>(&word), 1 /* FUTEX_WAKE */, 1) || is_refused(SYS_madvise) ||
         is_refused(SYS_process_madvise, -1);
}

}  // namespace

namespace hinterland::seccomp {

bool is_strict() { return t_strict; }
bool is_filtered() { return g_filtered.load(std::memory_order_relaxed); }

// A filter for all threads (TSYNC) is one for the program's. If the caller is the only one of those, it is the same
// as one for the caller. Of several each would have to ask for it; then the runtime's get it as well, and if that
// keeps them from serving faults the program would wait for ever at the next.
long call(long operation, long flags, long arguments) {
  HeldForCall held(reinterpret_cast<const void*>(arguments), 16);
  if (operation == SECCOMP_SET_MODE_STRICT) prepare_for_strict();
  if (operation == SECCOMP_SET_MODE_FILTER) note_filter();
  bool for_all = operation == SECCOMP_SET_MODE_FILTER && (flags & SECCOMP_FILTER_FLAG_TSYNC) != 0 && serves_program();
  if (for_all && program_end::living_threads() == 1) {
    flags &= ~(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    for_all = false;
  }
  long result = raw::call(SYS_seccomp, operation, flags, arguments);
  if (for_all && result == 0 && refuses_runtime()) {
    log::error(
        "the program's seccomp filter for all threads refuses what the runtime's threads need to bring pages in");
    log::error(
        "set the filter before threads are started or without SECCOMP_FILTER_FLAG_TSYNC, or run the program "
        "natively");
    _exit(1);
  }
  if (!raw::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace hinterland::seccomp

// The further arguments are numbers or pointers, and the kernel ignores what an option does not use.
HL_INTERPOSED int prctl(int option, ...) noexcept {
  static constinit Next<int(int, ...)> next("prctl");
  va_list list;
  va_start(list, option);
  unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
                d = va_arg(list, unsigned long);
  va_end(list);
  auto* function = next.get();  // looked up now: in strict mode nothing can be
  if (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) prepare_for_strict();
  if (option == PR_SET_SECCOMP && a == SECCOMP_MODE_FILTER) note_filter();
  if (serves_program())
    if (std::optional<int> result = same_page_merging::answer(option, a, b, c, d)) {
      if (*result >= 0) return *result;
      errno = -*result;
      return -1;
    }
  return function(option, a, b, c, d);
}
