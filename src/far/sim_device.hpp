// sim: any other device behind a simulated link: slower, failing, corrupting or dying, the same way each time.
//
// The link is full duplex, as a network is: reads and writes each go one after the other at the given bandwidth, and
// arrive one latency later. All channels and all forked processes share it.
#pragma once

#include <memory>

#include "far/device.hpp"
#include "far/sim_settings.hpp"

namespace hinterland::far {

// Opens the inner device, too, which gets `inner_settings`.
Result<std::unique_ptr<Device>> open_sim_device(const SimSettings& settings, const DeviceSettings& inner_settings);

}  // namespace hinterland::far
