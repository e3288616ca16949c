// Whether Linux AIO can be had here: what a file: device asks when it is opened, and `hinterland doctor` tells.
#pragma once

namespace hinterland::far {

// 0, or the errno for which a context cannot be set up. Then file: does blocking reads and writes.
int aio_error();

}  // namespace hinterland::far
