// What the preloaded runtime offers to the fibers' library: hints that do not wait. The runtime room fills it in; the
// library finds it when it is loaded, or does without.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Signal mode: asked in the SIGBUS handler about a page that has to be fetched from far away, with SIGBUS and all
// signals but faults blocked. `context` is the ucontext_t of who touched it. Not 0: it has been changed so that the
// thread goes on elsewhere when the handler returns, and the page need not be there. Async-signal-safe.
typedef int (*hl_fault_parker)(std::uintptr_t address, int write, void* context);

// Any thread may call these; they take a hint as hl_runtime.hint does, and keep errno. They need 32 KiB of stack that
// is not far. None of them waits for a page.
struct hl_parking {
  // Starts what the hint asks for. Not 0: pages are on their way, and on_its_way() will say when they are not.
  int (*begin)(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags);
  // Of a hint that was begun. It changes when somebody polls.
  int (*on_its_way)(const void* address, std::size_t size);
  // Gathers what has arrived, for anybody. Not 0 when something had.
  int (*poll)();
  // Who is asked from now on; nullptr: nobody. Where faults are not served by signal, nobody ever is.
  void (*set_fault_parker)(hl_fault_parker parker);
};

// Exported by libhinterland-preload.so.
extern const struct hl_parking hl_parking __attribute__((weak, visibility("default")));

}  // extern "C"
