// Which memory server a tcp: device is at: tcp://HOST:PORT, where HOST may be [v6-address].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::far {

struct TcpAddress {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;

  std::string url() const;
};

// From what stands behind "tcp:".
Result<TcpAddress> parse_tcp(std::string_view rest);

}  // namespace hinterland::far
