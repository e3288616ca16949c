// The tcp: device over a real server, in the suite that every device passes.
#include "far/conformance_test.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::far::testing {
namespace {

using hinterland::testing::ServerProcess;
using hinterland::testing::settings_with;
using hinterland::testing::small_server;
using hinterland::testing::TemporaryFile;

// The server in a process of its own, because the suite forks and loses it.
Result<OpenedDevice> open_over_tcp(std::uint32_t slabs, bool with_key) {
  struct Context {
    TemporaryFile key{"a key of thirty-two bytes or more\n"};
    std::unique_ptr<ServerProcess> server;
  };
  auto context = std::make_shared<Context>();
  ServerOptions options = small_server(slabs);
  if (with_key) options.key_file = context->key.path();
  context->server = std::make_unique<ServerProcess>(options);
  auto device = open_tcp_device({"127.0.0.1", context->server->port()},
                                settings_with(with_key ? context->key.path() : "", 1'000'000'000));
  if (!device) return std::unexpected(device.error());
  OpenedDevice opened;
  opened.device = std::move(*device);
  opened.lose = [server = context->server.get()] { server->kill(); };
  opened.context = context;
  return opened;
}

INSTANTIATE_TEST_SUITE_P(
    Tcp, DeviceConformance,
    ::testing::Values(DeviceUnderTest{"plain", [](std::uint32_t slabs) { return open_over_tcp(slabs, false); }},
                      DeviceUnderTest{"key", [](std::uint32_t slabs) { return open_over_tcp(slabs, true); }}),
    device_name);

}  // namespace
}  // namespace hinterland::far::testing
