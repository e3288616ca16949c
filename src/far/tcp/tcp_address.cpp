#include "far/tcp/tcp_address.hpp"

#include <algorithm>
#include <charconv>

#include "far/url_text.hpp"

namespace hinterland::far {

Result<TcpAddress> parse_tcp(std::string_view rest) {
  const std::string remedy = "write tcp://HOST:PORT, for example tcp://10.0.0.7:7700 or tcp://[fe80::1]:7700";
  if (!rest.starts_with("//")) return refuse_url("tcp: is not followed by //", remedy);
  rest.remove_prefix(2);
  TcpAddress address;
  std::size_t colon;
  if (rest.starts_with('[')) {
    std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return refuse_url("tcp: address in " + quoted(rest) + " lacks its ]", remedy);
    address.host = rest.substr(1, end - 1);
    colon = end + 1;
  } else {
    colon = std::min(rest.find(':'), rest.size());
    address.host = rest.substr(0, colon);
    if (rest.find(':', colon + 1) != std::string_view::npos)
      return refuse_url("tcp: " + quoted(rest) + " has several colons", remedy);
  }
  if (address.host.empty()) return refuse_url("tcp: names no host", remedy);
  if (address.host.find_first_of("/?@ ") != std::string::npos)
    return refuse_url("tcp: " + quoted(address.host) + " is not a host", remedy);
  if (colon >= rest.size() || rest[colon] != ':') return refuse_url("tcp: names no port", remedy);
  std::string_view port = rest.substr(colon + 1);
  auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (failure != std::errc() || end != port.data() + port.size() || address.port == 0)
    return refuse_url("tcp: " + quoted(port) + " is not a port (1 to 65535)", remedy);
  return address;
}

std::string TcpAddress::url() const {
  bool v6 = host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace hinterland::far
