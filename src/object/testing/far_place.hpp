// A device of each kind for a test, for as long as the test needs it.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "server/server_test_support.hpp"

namespace hinterland::object::testing {

// `kind`: mem:, zmem:, file: or tcp:, of 256 MiB where it has to have a size. The server is a process of its own.
struct FarPlace {
  explicit FarPlace(const std::string& kind) : url(kind) {
    if (kind == "file:") {
      unlink(file.path().c_str());  // the device makes its own
      url += file.path() + "?size=256M";
    } else if (kind == "tcp:") {
      server = std::make_unique<hinterland::testing::ServerProcess>(hinterland::testing::small_server(16));
      url = server->url();
    }
  }
  hinterland::testing::TemporaryFile file{""};
  std::unique_ptr<hinterland::testing::ServerProcess> server;
  std::string url;
};

}  // namespace hinterland::object::testing
