#include "fiber/hinting.hpp"

#include <atomic>
#include <mutex>

#include "fiber/objects.hpp"
#include "fiber/parking.hpp"
#include "fiber/scheduler.hpp"
#include "hinterland/hint.h"

namespace hinterland::fiber {
namespace {

using Hint = decltype(hl_runtime::hint);

hl::fibers::detail::spin_lock g_guard;
unsigned g_schedulers = 0;  // guarded by g_guard
std::atomic<Hint> g_blocking{nullptr};

void hint(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  Fiber* self = current_fiber();
  if (self == nullptr || !self->scheduler->hints_park() || is_in_undivided_step(current_worker()->slot)) {
    g_blocking.load(std::memory_order_relaxed)(address, size, read_ahead, flags);
    return;
  }
  self->hint = {address, size, read_ahead, flags};
  leave(Leaving::hints);
}

bool runtime_is_there() { return &hl_runtime != nullptr && &hl_parking != nullptr; }

void set_fault_parker(hl_fault_parker parker) {
  if (hl_parking.set_fault_parker != nullptr) hl_parking.set_fault_parker(parker);
}

}  // namespace

void begin_hinting() {
  if (!runtime_is_there()) return;
  std::lock_guard lock(g_guard);
  if (g_schedulers++ != 0) return;
  // Programs read the entry without a lock; the old and the new one are both right at any time.
  g_blocking.store(std::atomic_ref(hl_runtime.hint).load(), std::memory_order_relaxed);
  std::atomic_ref(hl_runtime.hint).store(hint);
  set_fault_parker(can_park_on_faults() ? park_on_fault : nullptr);
}

void end_hinting() {
  if (!runtime_is_there()) return;
  std::lock_guard lock(g_guard);
  if (--g_schedulers != 0) return;
  std::atomic_ref(hl_runtime.hint).store(g_blocking.load(std::memory_order_relaxed));
  set_fault_parker(nullptr);
}

bool hint_begin(const HintCall& hint) {
  bool on_their_way = hl_parking.begin(hint.address, hint.size, hint.read_ahead, hint.flags) != 0;
  return on_their_way && (hint.flags & HL_HINT_NO_WAIT) == 0;
}

bool hint_is_on_its_way(const HintCall& hint) { return hl_parking.on_its_way(hint.address, hint.size) != 0; }

bool hints_poll() { return runtime_is_there() && hl_parking.poll() != 0; }

}  // namespace hinterland::fiber
