#include "paging/serve/handler_team.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland {
namespace {

// A CPU for each but one handler's thread; with two CPUs, two handlers: each shares its CPU with the thread it
// serves.
unsigned spares_for_cpus() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  return static_cast<unsigned>(std::clamp<int>(CPU_COUNT(&allowed), 1, Attendance::kHandlersMax)) - 1;
}

}  // namespace

Status HandlerTeam::create(Evictor& direct) {
  auto made = FaultHandler::create(core_, {threads_, attendance_, companions_, 0}, settler_, direct, nullptr);
  if (!made) return std::unexpected(made.error());
  handlers_[0] = std::move(*made);
  return {};
}

Status HandlerTeam::start(void (*wake_housekeeper)()) {
  wake_housekeeper_ = wake_housekeeper;
  settler_.set_waker(wake_housekeeper);
  bool one_is_enough = !core_.devices.all_synchronous() || !core_.kernel.features().look_for_faults;
  attendance_.allow_spares(one_is_enough ? 0 : spares_for_cpus(), wake_housekeeper);
  first().placement().set_watchdog(wake_housekeeper);
  map_helper_.set_waker(wake_housekeeper);
  if (core_.parts.second_mapper) first().let_help(map_helper_);
  auto entry = [](void* self) -> void* {
    static_cast<FaultHandler*>(self)->run();
    return nullptr;
  };
  Status started = start_runtime_thread("hl-faults", handlers_[0].get(), entry);
  if (started) first().wait_until_it_runs();
  return started;
}

// All of them at once: a thread that faults cannot allocate what one takes.
Status HandlerTeam::start_lanes(void (*wake_housekeeper)()) {
  wake_housekeeper_ = wake_housekeeper;
  settler_.set_waker(wake_housekeeper);
  // An observer is told of one fault at a time.
  unsigned wanted = core_.observer != nullptr ? 0 : spares_for_cpus();
  for (unsigned more = 0; more < wanted; ++more)
    if (auto lane = add(); !lane) {
      log::info("%s; threads that fault at the same time wait for each other", lane.error().what());
      break;
    }
  return {};
}

bool HandlerTeam::wants_start() const {
  return settler_.wants_start() || map_helper_.wants_start() || next_is_called();
}

bool HandlerTeam::next_is_called() const {
  unsigned next = made_.load(std::memory_order_relaxed);
  return next < Attendance::kHandlersMax && attendance_.is_called(next);
}

void HandlerTeam::start_called() {
  auto entry = [](void* self) -> void* {
    static_cast<FaultHandler*>(self)->run_spare();
    return nullptr;
  };
  settler_.start();
  map_helper_.start();
  while (next_is_called()) {
    unsigned handler = made_.load(std::memory_order_relaxed);
    auto spare = add();
    Status status;
    if (spare)
      status = start_runtime_thread("hl-faults-more", *spare, entry);
    else
      status = std::unexpected(spare.error());
    if (status) continue;
    // Faults are served all the same, so a program that is itself out of mappings or threads is not bothered with it.
    log::info("%s; threads that fault at the same time share a fault handler", status.error().what());
    attendance_.allow_spares(handler - 1, wake_housekeeper_);
    attendance_.leave(handler, 0);
  }
}

Result<FaultHandler*> HandlerTeam::add() {
  unsigned handler = made_.load(std::memory_order_relaxed);
  if (handler == Attendance::kHandlersMax)
    return std::unexpected(
        Error::make(EAGAIN, "there are already %u fault handlers, as many as there can be", handler));
  auto evictor = Evictor::create(core_);
  if (!evictor) return std::unexpected(evictor.error());
  auto made =
      FaultHandler::create(core_, {threads_, attendance_, companions_, handler}, settler_, **evictor, &first());
  if (!made) return std::unexpected(made.error());
  evictors_[handler] = std::move(*evictor);
  handlers_[handler] = std::move(*made);
  handlers_[handler]->placement().set_watchdog(wake_housekeeper_);
  made_.store(handler + 1, std::memory_order_release);  // pairs with watch() and pause()
  return handlers_[handler].get();
}

std::uint64_t HandlerTeam::watch() {
  std::uint64_t again_ns = HandlerPlacement::kNotWatched;
  for (unsigned handler = 0; handler < made_.load(std::memory_order_acquire); ++handler)
    again_ns = std::min(again_ns, handlers_[handler]->placement().watch());
  return again_ns;
}

void HandlerTeam::pause() {
  for (unsigned handler = 0; handler < made_.load(std::memory_order_acquire); ++handler) handlers_[handler]->pause();
}

void HandlerTeam::resume() {
  for (unsigned handler = 0; handler < made_.load(std::memory_order_acquire); ++handler) handlers_[handler]->resume();
}

void HandlerTeam::after_fork_in_child() {
  for (auto& handler : handlers_) static_cast<void>(handler.release());
  for (auto& evictor : evictors_) static_cast<void>(evictor.release());
  made_.store(1, std::memory_order_relaxed);
  attendance_.after_fork_in_child();
  companions_.after_fork_in_child();
  settler_.after_fork_in_child();
  map_helper_.after_fork_in_child();
}

}  // namespace hinterland
