// Starts the pager as the HINTERLAND_* variables say: for the preloaded library and for the one that programs link.
#pragma once

#include "base/error.hpp"
#include "base/settings.hpp"
#include "paging/pager.hpp"

namespace hinterland::hint {

enum class Take : bool { as_told, at_once };  // when the pager takes the program's memory over

// Once a process, under InsideRuntime. `program`: for the figures. `on_managed`: when paging has begun.
// `observer_of`: makes the observer of faults that the settings ask for, or nullptr; `observe_on_request`: what
// `trace --attach` asks for.
Result<Pager*> start_pager(const char* program, Take take, void (*on_managed)(),
                           FaultObserver* (*observer_of)(const Settings&) = nullptr,
                           ObserveOnRequest observe_on_request = nullptr);

}  // namespace hinterland::hint
