// Far URLs: the text after `--far`, checked before anything is opened.
//
//   mem:[?size=SIZE]                         RAM of this process
//   zmem:[lz4|zstd][?size=SIZE]              compressed RAM, lz4 when nothing is said
//   file:PATH[?size=SIZE]                    a regular file or block device; the last '?' ends the path
//   tcp://HOST:PORT                          a memory server; HOST may be [v6-address]
//   sim:latency=5us,bandwidth=100Gbps,inner=URL    any other device, slowed down or broken; inner comes last
//
// Each kind of device reads its own: schemes.cpp has a row for each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "far/device.hpp"

namespace hinterland::far {

using DeviceOpener = std::function<Result<std::unique_ptr<Device>>(const DeviceSettings&)>;

// What opens the device; nothing is opened yet. Errors have code 0 (the text is wrong, not the system) and name the
// part that is wrong and the nearest valid one. An inner URL is checked too.
Result<DeviceOpener> parse_url(std::string_view text);

// The same device for a process in another folder: the path of file:, also of one inside sim:, begins at `folder`.
std::string url_from(const std::string& folder, std::string_view text);

}  // namespace hinterland::far
