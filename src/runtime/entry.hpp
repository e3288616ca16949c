// What hinted programs see of the runtime: struct hl_runtime of hinterland/hint.h.
#pragma once

namespace hinterland::hint {

// Paging has begun: from now on, hints may be about memory that is far. Pager::current() is there.
void begin();
// The same for the signal library, where faults are served by signal.
void begin_self_paging();

}  // namespace hinterland::hint
