// A request to a running program, through its page of figures (base/stats.hpp).
#pragma once

#include "base/stats.hpp"

namespace hinterland::cli {

// What is asked for is in the page already. Wakes the program's runtime, and waits for its answer, at most 2 seconds:
// 0 or errno; ETIMEDOUT when there is none.
int send_request(StatPage& page);

}  // namespace hinterland::cli
