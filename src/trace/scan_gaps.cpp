#include "trace/scan_gaps.hpp"

#include <algorithm>

namespace hinterland::trace {

ScanGaps::Gap ScanGaps::on_fault(std::uint64_t page, std::uint64_t thread_id) {
  Scan* oldest = &scans_[0];
  for (Scan& scan : scans_) {
    if (scan.used < oldest->used) oldest = &scan;
    if (scan.length == 0 || scan.thread_id != thread_id) continue;
    auto step = static_cast<std::int64_t>(page - scan.last);
    if (scan.length == 1 && step == -1) scan.direction = -1;
    std::int64_t ahead = step * scan.direction;
    bool goes_on = ahead == 1, leaves_out = ahead > 1 && scan.length >= kLengthLeast;
    if (!goes_on && (!leaves_out || ahead > static_cast<std::int64_t>(kGapMax) + 1)) continue;
    Gap gap{scan.direction > 0 ? scan.last + 1 : page + 1, static_cast<std::uint64_t>(ahead - 1),
            scan.length >= kLengthLeast};
    scan.last = page;
    ++scan.length;
    scan.used = ++clock_;
    return gap;
  }
  *oldest = {thread_id, page, 1, 1, ++clock_};
  return {};
}

}  // namespace hinterland::trace
