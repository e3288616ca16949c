// The library's constructor. Under `hinterland run` the runtime has started by now; in a program that links it, it
// starts with the first region, and then threads have their own stacks alone.
#include "base/raw_call.hpp"
#include "signal/interposed.hpp"
#include "signal/self_paging.hpp"

using hinterland::NextFunction;

// By the linker, around the section that HL_INTERPOSED fills.
extern "C" NextFunction* const __start_hl_next[] __attribute__((visibility("hidden")));
extern "C" NextFunction* const __stop_hl_next[] __attribute__((visibility("hidden")));

extern "C" const int hl_signal_library = 1;

// C linkage: self_paging.hpp declares it.
__attribute__((visibility("default"))) void hl_make_calls_at(std::uintptr_t gate, std::uintptr_t handler_end) {
  hinterland::raw::g_gate = gate;
  hinterland::raw::g_handler_end = handler_end;
}

namespace hinterland {
void start_stacks();
}

__attribute__((constructor)) static void start() {
  for (NextFunction* const* at = __start_hl_next; at != __stop_hl_next; ++at) (*at)->get();
  hinterland::start_stacks();
}
