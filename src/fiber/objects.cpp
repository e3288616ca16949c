#include "fiber/objects.hpp"

#include <chrono>
#include <mutex>

#include "fiber/object_parking.hpp"
#include "fiber/scheduler.hpp"

namespace hinterland::fiber {
namespace {

hl::fibers::detail::spin_lock g_objects_guard;
unsigned g_object_schedulers = 0;  // guarded by g_objects_guard

bool objects_are_there() { return &hl_object_parking != nullptr && &hl_objects != nullptr; }

int may_park() {
  Fiber* self = current_fiber();
  return self != nullptr && self->scheduler->hints_park() ? 1 : 0;
}

void park_for(const void* what) {
  current_fiber()->awaited = what;
  leave(Leaving::arrival);
}

void sleep_for_ns(std::uint64_t ns) { hl::fibers::this_fiber::sleep_for(std::chrono::nanoseconds(ns)); }

constexpr hl_object_fibers kFibers = {.may_park = may_park, .park = park_for, .sleep = sleep_for_ns};

}  // namespace

void begin_objects() {
  if (!objects_are_there()) return;
  std::lock_guard lock(g_objects_guard);
  if (g_object_schedulers++ == 0) hl_object_parking.set_fibers(&kFibers);
}

void end_objects() {
  if (!objects_are_there()) return;
  std::lock_guard lock(g_objects_guard);
  if (--g_object_schedulers == 0) hl_object_parking.set_fibers(nullptr);
}

ThreadWithObjects::ThreadWithObjects(hl::far::detail::thread_slot** slot) : slot_(slot) {
  *slot_ = objects_are_there() ? hl_objects.enter_thread() : nullptr;
  if (has_scopes(*slot_)) take_scopes(*slot_, scopes_);
}

ThreadWithObjects::~ThreadWithObjects() {
  if (*slot_ == nullptr) return;
  if ((scopes_[0] | scopes_[1]) != 0) bring_scopes(*slot_, scopes_);
  hl_objects.leave_thread(*slot_);
}

void take_scopes(hl::far::detail::thread_slot* slot, std::uint32_t (&scopes)[2]) {
  hl_object_parking.take_scopes(slot, scopes);
}
void bring_scopes(hl::far::detail::thread_slot* slot, std::uint32_t (&scopes)[2]) {
  hl_object_parking.bring_scopes(slot, scopes);
}

bool object_is_on_its_way(const void* what) { return hl_object_parking.is_on_its_way(what) != 0; }

int objects_descriptor() { return objects_are_there() ? hl_object_parking.descriptor() : -1; }

bool objects_poll() { return objects_are_there() && hl_object_parking.poll() != 0; }

}  // namespace hinterland::fiber
