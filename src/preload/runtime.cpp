#include "preload/runtime.hpp"

#include <cstdlib>

#include "hint/entry.hpp"
#include "hint/regions.hpp"
#include "hint/start.hpp"
#include "kernel/kernel.hpp"
#include "kernel/probe.hpp"
#include "preload/far_heap.hpp"

namespace hinterland {

bool runtime_wanted() {
  return std::getenv("HINTERLAND_LOCAL") != nullptr || std::getenv("HINTERLAND_FAR") != nullptr;
}

bool runtime_permitted() { return faults_permitted(); }

Status start_runtime(const char* program) {
  Result<Pager*> started = hint::start_pager(program, hint::Take::as_told, [] {
    far_heap::give_back_promptly();
    hint::begin();
  });
  if (!started) return std::unexpected(started.error());
  return {};
}

// Started before the program, or not wanted.
Result<Pager*> hint::pager_for_regions() { return Pager::current(); }

}  // namespace hinterland
