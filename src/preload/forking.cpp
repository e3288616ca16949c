// Order in the parent: prepare handlers (user code) - stdio lock - far objects - our tables - no allocation in
// jemalloc by the runtime - jemalloc's locks - SIGBUS action - pager - system call. In the child the same backwards,
// with far memory first, because everything else may lie in it.
#include "preload/forking.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/inside.hpp"
#include "base/own_stack.hpp"
#include "base/stats.hpp"
#include "object/entry.hpp"
#include "paging/bus_signal.hpp"
#include "preload/atfork.hpp"
#include "preload/catching.hpp"
#include "preload/crash.hpp"
#include "preload/far_heap.hpp"
#include "preload/heap_gate.hpp"
#include "preload/jemalloc.hpp"
#include "preload/known_places.hpp"
#include "preload/left_local.hpp"
#include "preload/libc_after_fork.hpp"
#include "preload/next.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/threads.hpp"
#include "preload/trap_signal.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::forking {
namespace {

constinit Next<pid_t()> g_real_fork("_Fork");

long by_libc(void*) {
  pid_t child = g_real_fork.get()();
  return child < 0 ? -errno : child;
}

void lock_all() {
  crash::before_fork();
  atfork::lock();
  left_local::before_fork();
  known_places::before_fork();
  far_heap::before_fork();
  heap_gate::close();
  jemalloc_fork_handlers().prepare();
}

void unlock_all() {
  far_heap::after_fork();
  known_places::after_fork();
  left_local::after_fork();
  atfork::unlock();
  crash::after_fork();
}

void after_in_parent(bool forked) {
  pager().after_fork_in_parent(forked);
  bus_signal::after_fork();
  jemalloc_fork_handlers().parent();
  heap_gate::open_in_parent();
  unlock_all();
  object::after_fork_in_parent(forked);
}

// A child needs a fault descriptor of its own, which the program's limit (RLIMIT_NOFILE) may leave no number for.
// Nobody else runs in the child meanwhile. Beyond the hard limit there is none: then the child ends with a message.
class DescriptorsAllowed {
 public:
  DescriptorsAllowed() {
    if (raw::failed(raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&given_)))) return;
    struct rlimit raised = {given_.rlim_max, given_.rlim_max};
    is_raised_ = given_.rlim_cur < kEnough && given_.rlim_max > given_.rlim_cur && set(raised);
  }
  ~DescriptorsAllowed() {
    if (is_raised_) set(given_);
  }

 private:
  static constexpr rlim_t kEnough = 1024;  // ours have numbers from 900
  static bool set(const struct rlimit& limit) {
    return !raw::failed(raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, reinterpret_cast<long>(&limit)));
  }
  struct rlimit given_{};
  bool is_raised_ = false;
};

void after_in_child() {
  DescriptorsAllowed allowed;
  trap_signal::after_fork_in_child();
  libc_after_fork::count_one_thread();  // before the pager starts its threads anew
  jemalloc_fork_handlers().child();
  heap_gate::open_in_child();
  pager().reserve_in_child();            // before anything is mapped here
  open_stat_page(stat_page()->program);  // before the pager's new threads look at it
  bus_signal::after_fork();
  pager().after_fork_in_child();
  unlock_all();
  object::after_fork_in_child();
  threads::after_fork_in_child();
}

// The fork itself, with far memory right on both sides. Nothing of the program runs in between.
pid_t fork_far(MakeChild* make = by_libc, void* argument = nullptr) {
  int saved_errno = errno;
  catching::Paused paused;
  // While the movers stand still nobody fetches a page, so no handler of the program may run: it, or the kernel that
  // writes its frame to a signal stack in far memory, would wait for ever. All signals, libc's own two included.
  SignalsBlocked blocked(SignalsBlocked::all());
  InsideRuntime inside;
  long child = on_own_stack([=] {  // in the child, too, whose far memory is there at the end only
    object::before_fork();         // first: calls under way may need all that follows
    lock_all();
    bus_signal::before_fork();  // last: who has it and meets a page that is lost would wait for itself
    long made = pager().before_fork();
    if (made == 0) made = make(argument);
    if (made == 0)
      after_in_child();
    else
      after_in_parent(made > 0);
    return made;
  });
  errno = child < 0 ? static_cast<int>(-child) : saved_errno;
  return child < 0 ? -1 : static_cast<pid_t>(child);
}

}  // namespace

pid_t fork_plain() { return fork_far(); }
pid_t fork_by(MakeChild* make, void* argument) { return fork_far(make, argument); }

pid_t fork_with_handlers() {
  std::size_t mark = atfork::run_prepare();
  libc_after_fork::lock_stdio();
  pid_t child = fork_far();
  int saved_errno = errno;
  if (child == 0) {
    libc_after_fork::repair_child();
    atfork::run_child(mark);
  } else {
    libc_after_fork::unlock_stdio();
    atfork::run_parent(mark);
  }
  errno = saved_errno;
  return child;
}

}  // namespace hinterland::forking
