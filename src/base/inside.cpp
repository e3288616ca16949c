#include "base/inside.hpp"

namespace hinterland {
thread_local int t_inside_runtime = 0;
thread_local bool t_cancellation_waits = false;
}  // namespace hinterland
