// Byte sizes as people write them: "64M", "1.5G", "4KiB", "4096". One parser for the command, the variables, the
// configuration file and far URLs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland {

// Nothing larger is a size: the user half of the x86-64 address space.
inline constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 47;

// A number with an optional fraction and an optional unit: K, M, G, T, also with B or iB, in either case; all are
// powers of 1024; B or nothing means bytes. 0, negative, fractions of a byte and more than kSizeMax are refused.
// `what` names the option or parameter in the error, whose code is 0: the text is wrong, not the system. Allocates
// only for the error text.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view what = "size");

// The shortest exact text with a unit of 1024 ("64M", "1536M", "4097"): parse_size() of it gives `bytes` again.
std::string exact_size_text(std::uint64_t bytes);

// For people: three digits and a unit ("1.50 GiB", "12.3 MiB", "512 bytes").
std::string rounded_size_text(std::uint64_t bytes);

}  // namespace hinterland
