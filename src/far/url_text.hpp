// For those who read the part of a far URL behind its scheme (schemes.cpp): errors in one form, and parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::far {

// The text between quotation marks, cut after 200 bytes.
std::string quoted(std::string_view text);

// An Error with code 0: the text is wrong, not the system. `what` begins with the scheme, where that is known.
std::unexpected<Error> refuse_url(const std::string& what, const std::string& remedy);
std::unexpected<Error> given_twice(std::string_view scheme, std::string_view name);

struct UrlParameter {
  std::string_view name, value;
};

// Takes "name=value" off the front of `text`, up to `separator`.
UrlParameter take_parameter(std::string_view& text, char separator);

// Takes "?size=64M" off the end of `rest`: bytes, 0 where it is not there. At least a slab.
Result<std::uint64_t> take_size(std::string_view& rest, std::string_view scheme);

}  // namespace hinterland::far
