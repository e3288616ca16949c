// HOST:PORT, with brackets around IPv6 addresses: 127.0.0.1:7700, [::1]:7700, far.example.org:0.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};

inline Result<ListenAddress> parse_listen_address(const std::string& text, const std::string& named) {
  ListenAddress address;
  std::size_t colon = text.rfind(':');
  bool valid = colon != std::string::npos && colon > 0;
  if (valid) {
    address.host = text.substr(0, colon);
    const char* end = text.data() + text.size();
    auto [after, problem] = std::from_chars(text.data() + colon + 1, end, address.port);
    valid = problem == std::errc() && after == end;
    bool brackets = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
    if (brackets) address.host = address.host.substr(1, address.host.size() - 2);
    if (!brackets && address.host.find(':') != std::string::npos) valid = false;
  }
  if (valid) return address;
  Error error = Error::make(0, "%s: '%s' is not HOST:PORT", named.c_str(), text.c_str());
  return std::unexpected(error.remedy("write for example 127.0.0.1:7700 or [::1]:7700; port 0 takes a free one"));
}

}  // namespace hinterland::cli
