#include "preload/runtime.hpp"

#include <cstdlib>

#include "kernel/kernel.hpp"
#include "kernel/probe.hpp"
#include "object/guards.hpp"
#include "preload/allocation_watch.hpp"
#include "preload/far_heap.hpp"
#include "preload/window_blocks.hpp"
#include "runtime/entry.hpp"
#include "runtime/regions.hpp"
#include "runtime/sites.hpp"
#include "runtime/start.hpp"
#include "trace/allocation_log.hpp"
#include "trace/ring_observer.hpp"

namespace hinterland {
namespace {

constexpr allocation_watch::Observer kAllocations = {
    trace::allocation_log::sampled, trace::allocation_log::made,   trace::allocation_log::taken_out,
    trace::allocation_log::ended,   trace::allocation_log::mapped, trace::allocation_log::unmapped};

FaultObserver* observer_of(const Settings& settings) {
  FaultObserver* observer = trace::observer_from_environment(settings.read_ahead_pages, settings.local_bytes);
  if (observer != nullptr && trace::allocation_log::begin()) allocation_watch::begin(kAllocations);
  return observer;
}

int observe_on_request(const char* directory, std::uint64_t instruction_every, FaultObserver** observer) {
  int result = trace::observe_on_request(directory, instruction_every, observer);
  if (result == 0 && trace::allocation_log::begin()) allocation_watch::begin(kAllocations);
  return result;
}

}  // namespace

bool runtime_wanted() {
  return std::getenv("HINTERLAND_LOCAL") != nullptr || std::getenv("HINTERLAND_FAR") != nullptr;
}

bool runtime_permitted() { return faults_permitted(); }

Status start_runtime(const char* program) {
  auto on_managed = [] {
    far_heap::give_back_promptly();
    hint::begin();
  };
  Result<Pager*> started =
      hint::start_pager(program, hint::Take::as_told, on_managed, observer_of, observe_on_request);
  if (!started) return std::unexpected(started.error());
  return {};
}

// Started before the program, or not wanted.
Result<Pager*> hint::pager_for_regions() { return Pager::current(); }
bool hint::sites_wanted() { return Pager::current() != nullptr; }

}  // namespace hinterland

void hl_guarded_module(hinterland::object::GuardedModule* module) {
  using namespace hinterland;
  if (Pager::current() == nullptr) return;
  object::take_guarded_module(*module, [] {
    window_blocks::g_calls = {object::Window::kBase, object::Window::kBytes, object::release_block,
                              object::size_of_block, object::allocate_block, object::move_bytes};
  });
}
