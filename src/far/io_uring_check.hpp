// Whether io_uring can be had here: what a file: device asks when it is opened, and `hinterland doctor` tells.
#pragma once

namespace hinterland::far {

// 0, or the errno for which a ring as large as a channel's cannot be set up. Then file: does blocking reads and
// writes.
int io_uring_error();

}  // namespace hinterland::far
