// file: far memory in a file or on a block device, with Linux AIO where the file takes O_DIRECT, else by pread and
// pwrite (through the page cache, AIO would wait where it submits).
//
// The checksum of each page stays in memory (shared with forked children) and is verified when the page is read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "far/device.hpp"
#include "far/file_target.hpp"

namespace hinterland::far {

// From what stands behind "file:": PATH[?size=SIZE]; the last '?' ends the path.
Result<FileSettings> parse_file(std::string_view rest);
// The same where the process is in another folder (url_from()).
std::string file_from(const std::string& folder, std::string_view rest);

Result<std::unique_ptr<Device>> open_file_device(const FileSettings& settings);

}  // namespace hinterland::far
