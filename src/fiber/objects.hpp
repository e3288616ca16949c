// Fibers that wait for far objects: what the runtime offers for them (object_parking.hpp), and how it is reached.
#pragma once

#include <cstdint>

#include "hinterland/object_runtime.hpp"

namespace hinterland::fiber {

// Counted: the first scheduler begins, the last one ends it. Nothing without the runtime.
void begin_objects();
void end_objects();

// While it lives, *slot is that of the calling thread, a worker; nullptr without a runtime. Scopes that the thread
// had open before are no fiber's.
class ThreadWithObjects {
 public:
  explicit ThreadWithObjects(hl::far::detail::thread_slot** slot);
  ~ThreadWithObjects();
  ThreadWithObjects(const ThreadWithObjects&) = delete;
  ThreadWithObjects& operator=(const ThreadWithObjects&) = delete;

 private:
  hl::far::detail::thread_slot** slot_;
  std::uint32_t scopes_[2] = {0, 0};
};

// A fiber's open scopes leave the thread with it, and come back to the one where it goes on.
inline bool has_scopes(const hl::far::detail::thread_slot* slot) {
  // relaxed: the thread's own
  return slot != nullptr &&
         (slot->active[0].load(std::memory_order_relaxed) | slot->active[1].load(std::memory_order_relaxed)) != 0;
}
// Its thread is in an undivided step of a container (object.hpp), and holds a lock: no fiber may leave it here.
inline bool is_in_undivided_step(const hl::far::detail::thread_slot* slot) {
  return slot != nullptr && slot->inside.load(std::memory_order_relaxed) != 0;  // relaxed: it is the caller's own
}
void take_scopes(hl::far::detail::thread_slot* slot, std::uint32_t (&scopes)[2]);
void bring_scopes(hl::far::detail::thread_slot* slot, std::uint32_t (&scopes)[2]);

bool object_is_on_its_way(const void* what);
// Sends off what was asked for, and gathers what has arrived, for anybody.
bool objects_poll();
// Sends off what was asked for. Readable when objects_poll() may find something; -1: look now and then.
int objects_descriptor();

}  // namespace hinterland::fiber
