// Files that a user or a trace names, to be read: regular ones of bounded size. A device may never end or do
// something when it is opened, a FIFO makes who opens it wait, and both are easily named by mistake or by malice.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace hinterland {

inline constexpr std::uint64_t kAnySize = ~std::uint64_t{0};  // for files that are mapped, or read here and there

// A descriptor for reading, with close-on-exec. Never blocks. `what` begins the error ("the trace", "--config:"),
// which has a code (ENOENT, EACCES, ...) if the file could not be opened, and 0 and a remedy if it is none to be
// read.
Result<int> open_plain_file(const std::string& path, const char* what, std::uint64_t bytes_max = kAnySize);

// The whole of it.
Result<std::string> read_plain_file(const std::string& path, const char* what, std::uint64_t bytes_max);

}  // namespace hinterland
