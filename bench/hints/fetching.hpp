// What it costs to fetch a page where there is room for it, so that nothing has to leave: Eden's figure 8 (b).
#pragma once

#include "hints/figures.hpp"

namespace hints_bench {

// "fetch-in-order" and "fetch-random": all that is far is read once, in each repetition. Between them the commands of
// Work::shrink and Work::grow send it away again; where there is no runtime, madvise(MADV_PAGEOUT) does. Throws
// std::runtime_error when next to nothing leaves.
Measured measure_fetching(const Work& work);

}  // namespace hints_bench
