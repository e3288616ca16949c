// A tcp: device at a server that can lie, with a channel and a slab.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "far/tcp/fake_server.hpp"
#include "far/tcp/tcp_device.hpp"
#include "far/test_support.hpp"

namespace hinterland::far::testing {

class OnFakeServer : public ::testing::Test {
 protected:
  // What the server is like must be set before.
  void open_device(std::uint64_t timeout_ns) {
    DeviceSettings settings;
    settings.timeout_ns = timeout_ns;
    auto opened = open_tcp_device({"127.0.0.1", server.port()}, settings);
    ASSERT_TRUE(opened) << opened.error().what();
    device = std::move(*opened);
    auto made = device->open_channel();
    ASSERT_TRUE(made) << made.error().what();
    channel = std::move(*made);
    auto allocated = device->allocate_slab();
    ASSERT_TRUE(allocated) << allocated.error().what();
    first_slab = *allocated;
  }

  FakeServer server;
  std::unique_ptr<Device> device;
  std::unique_ptr<Channel> channel;
  std::uint32_t first_slab = 0;
};

}  // namespace hinterland::far::testing
