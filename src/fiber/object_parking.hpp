// What far objects and the fibers' library offer each other: a fiber whose object has to be brought parks, and takes
// its open scopes along to other threads. The object room fills one in; the library finds it when it is loaded, or
// does without.
#pragma once

#include <cstdint>

#include "hinterland/object_runtime.hpp"

extern "C" {

// Of the library. All are for the calling thread.
struct hl_object_fibers {
  // Not 0: the caller is a fiber, of a run() whose waits for far memory park.
  int (*may_park)();
  // Of such a caller. Returns when `what` is no longer on its way, maybe in another thread.
  void (*park)(const void* what);
  // The same, so many ns later.
  void (*sleep)(std::uint64_t ns);
};

// Of the runtime. Any thread may call these; they keep errno. None of them waits for an object.
struct hl_object_parking {
  // Who parks from now on; nullptr: nobody. What it points to stays.
  void (*set_fibers)(const struct hl_object_fibers* fibers);
  // Of what was given to park(). It changes when somebody polls.
  int (*is_on_its_way)(const void* what);
  // Sends off what fibers have asked for, and gathers what has arrived, for anybody. Not 0 when something had.
  int (*poll)();
  // Sends off what fibers have asked for. A descriptor that becomes readable when poll() may find something; -1:
  // there is none, or something is waited for of which it does not tell.
  int (*descriptor)();
  // The calling thread's open scopes become those of nobody who runs, and are still open: scopes[i] of parity i.
  void (*take_scopes)(hl::far::detail::thread_slot* slot, std::uint32_t* scopes);
  // The calling thread's from now on.
  void (*bring_scopes)(hl::far::detail::thread_slot* slot, std::uint32_t* scopes);
};

// Exported by libhinterland-preload.so and libhinterland.so.
extern const struct hl_object_parking hl_object_parking __attribute__((weak, visibility("default")));

}  // extern "C"
