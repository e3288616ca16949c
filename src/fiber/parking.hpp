// What the preloaded runtime offers to the fibers' library: hints that do not wait. The hint room fills it in; the
// library finds it when it is loaded, or does without.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Any thread may call these; they take a hint as hl_runtime.hint does, and keep errno. They need 32 KiB of stack that
// is not far. None of them waits for a page.
struct hl_parking {
  // Starts what the hint asks for. Not 0: pages are on their way, and on_its_way() will say when they are not.
  int (*begin)(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags);
  // Of a hint that was begun. It changes when somebody polls.
  int (*on_its_way)(const void* address, std::size_t size);
  // Gathers what has arrived, for anybody. Not 0 when something had.
  int (*poll)();
};

// Exported by libhinterland-preload.so.
extern const struct hl_parking hl_parking __attribute__((weak, visibility("default")));

}  // extern "C"
