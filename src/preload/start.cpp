// The constructor: decides, before any other code of the program runs, whether this process has far memory.
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "base/log.hpp"
#include "base/own_stack.hpp"
#include "base/signal_handlers.hpp"
#include "base/stats.hpp"
#include "preload/catching.hpp"
#include "preload/crash.hpp"
#include "preload/descriptor_guards.hpp"
#include "preload/ending.hpp"
#include "preload/far_heap.hpp"
#include "preload/forking.hpp"
#include "preload/known_places.hpp"
#include "preload/libc_after_fork.hpp"
#include "preload/limits.hpp"
#include "preload/loader_heap.hpp"
#include "preload/loader_range.hpp"
#include "preload/own_calls.hpp"
#include "preload/raw.hpp"
#include "preload/runtime.hpp"
#include "preload/state.hpp"
#include "preload/threads.hpp"

namespace hinterland {

std::atomic<Mode> g_mode{Mode::early};
void resolve_masks();  // interpose_masks.cpp

namespace {

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool best_effort() {
  const char* value = getenv("HINTERLAND_BEST_EFFORT");
  return value != nullptr && value[0] != '\0' && std::strcmp(value, "0") != 0;
}

// `hinterland run` has checked the permission before it started anything. So a process that lacks it is further down
// and gave it away, by becoming another user. It runs on, as set-user-id programs do, which are not even asked.
void run_without_permission(const Error& error, const char* program) {
  log::warning("%s; %s was started by a program that may, and runs without far memory", error.what(), program);
  g_mode.store(Mode::native);
}

void refuse(const Error& error, const char* program) {
  if (!runtime_permitted()) return run_without_permission(error, program);
  log::error("%s", error.what());
  if (error.next_step()[0] != '\0') log::error("%s", error.next_step());
  if (best_effort()) {
    log::warning("the program runs without far memory (HINTERLAND_BEST_EFFORT)");
    g_mode.store(Mode::native);
    return;
  }
  for (;;) raw::call(SYS_exit_group, 1);
}

void refuse_to_catch(int problem, const char* program) {
  Error error = problem != 0 ? Error::make(problem, "system calls cannot be caught here")
                             : Error::make(0, "system calls cannot be caught: this libc is not one that is known");
  refuse(error.remedy("leave --catch out; it needs Linux 5.11 and glibc"), program);
}

void begin(const char* program) {
  if (!runtime_wanted()) {
    g_mode.store(Mode::native);
    return;
  }
  InsideRuntime inside;
  signal_handlers::promise_to_expect();
  own_stack::reserve();
  loader_range::find();
  loader_heap::take_for_runtime();
  libc_after_fork::prepare();
  limits::note_before_start();
  const bool catches = catching::is_wanted();
  if (catches && !catching::prepare()) return refuse_to_catch(0, program);
  Status started = start_runtime(program);
  if (!started) return refuse(started.error(), program);
  if (Pager::current()->faults_by_signal()) loader_range::find_libc();
  far_heap::start();
  if (Pager::current()->covers_all_addresses()) known_places::start();
  g_mode.store(Mode::far);
  limits::note_after_start();
  threads::start();
  crash::start();
  ending::prepare();
  forking::prepare();
  resolve_masks();
  descriptor_guards::prepare();
  if (int problem = catches ? catching::start() : 0; problem != 0) return refuse_to_catch(-problem, program);
  own_calls::report(catches);
  atexit(ending::finish_if_own);  // first registered, last to run
  at_quick_exit(ending::finish_if_own);
}

}  // namespace
}  // namespace hinterland

// The linker keeps this file because of the name (-u). With -z initfirst it runs before libc's own constructor,
// which sets environ.
extern "C" __attribute__((constructor, used)) void hinterland_preload_start(int count, char** arguments,
                                                                            char** environment) {
  if (environ == nullptr) environ = environment;
  hinterland::begin(count > 0 && arguments[0] != nullptr ? hinterland::base_name(arguments[0]) : "program");
}
