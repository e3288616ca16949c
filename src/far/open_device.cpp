// Picks the device that a URL names.
#include "far/device.hpp"
#include "far/file_device.hpp"
#include "far/mem_device.hpp"
#include "far/sim_device.hpp"
#include "far/url.hpp"
#include "far/zmem_device.hpp"

#if __has_include("far/tcp/tcp_device.hpp")
#include "far/tcp/tcp_device.hpp"
#endif

namespace hinterland::far {
namespace {

Result<std::unique_ptr<Device>> open_tcp(const Url& url, const DeviceSettings& settings) {
#if __has_include("far/tcp/tcp_device.hpp")
  return open_tcp_device(url.host, url.port, settings);
#else
  static_cast<void>(url), static_cast<void>(settings);
  Error error = Error::make(0, "tcp: this build has no network devices");
  error.remedy("use zmem: or file:");
  return std::unexpected(error);
#endif
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const std::string& text, const DeviceSettings& settings) {
  auto url = parse_url(text);
  if (!url) return std::unexpected(url.error());
  switch (url->scheme) {
    case Scheme::mem:
      return open_mem_device(url->size_bytes);
    case Scheme::tcp:
      return open_tcp(*url, settings);
    case Scheme::zmem:
      return open_zmem_device(url->codec, url->size_bytes);
    case Scheme::file:
      return open_file_device(
          {.path = url->path, .size_bytes = url->size_bytes, .direct = true, .asynchronous = true});
    case Scheme::sim: {
      auto inner = open_device(url->sim.inner, settings);
      if (!inner) return inner;
      return open_sim_device(url->sim, std::move(*inner));
    }
  }
  __builtin_unreachable();
}

}  // namespace hinterland::far
