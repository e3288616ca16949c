// Starts the pager as the HINTERLAND_* variables say: for the preloaded library and for the one that programs link.
#pragma once

#include "base/error.hpp"
#include "paging/pager.hpp"

namespace hinterland::hint {

enum class Take : bool { as_told, at_once };  // when the pager takes the program's memory over

// Once a process, under InsideRuntime. `program`: for the figures. `on_managed`: when paging has begun.
Result<Pager*> start_pager(const char* program, Take take, void (*on_managed)());

}  // namespace hinterland::hint
