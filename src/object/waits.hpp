// Waiting for far objects as programs do it: threads block, fibers park, and coroutines go on in an event loop. What
// entry.cpp exports of it.
#pragma once

#include "base/inside.hpp"
#include "object/arrivals.hpp"

namespace hinterland::object {

// Allocations are local memory meanwhile. Cheaper than InsideRuntime, for calls that are no cancellation points.
class Inside {
 public:
  Inside() { ++t_inside_runtime; }
  ~Inside() { --t_inside_runtime; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// As the fields of hl::far::detail::runtime of the same names say. Of the process's heap.
void* reach(Word* word, std::uint32_t flags, int* error);
std::size_t reach_many(Word* const* words, std::size_t count, std::uint32_t flags);
void* begin_object(std::size_t bytes, std::size_t alignment, const Type* type, std::uint32_t flags);
void relieve(Grace::Slot* slot);
bool pin_now(Arrival* what);
void pin_blocking(Arrival* what);
bool pin_later(Arrival* what);
void pin_forget(Arrival* what);
void unpin(const void* object);
ArrivalLoop* begin_loop();
void end_loop(ArrivalLoop* of);
Arrival* gather(ArrivalLoop* of);
void settle(ArrivalLoop* of);
void wait(ArrivalLoop* of, std::uint64_t timeout_ns);
int descriptor(ArrivalLoop* of);

}  // namespace hinterland::object
