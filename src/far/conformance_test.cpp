// The local devices in the conformance suite.
#include "far/conformance_test.hpp"

#include "far/file_device.hpp"

namespace hinterland::far::testing {
namespace {

// Opens "url" + the size of that many slabs.
DeviceUnderTest by_url(std::string name, std::string before_size) {
  return {std::move(name), [before_size](std::uint32_t slabs) -> Result<OpenedDevice> {
            std::string url = before_size + "?size=" + std::to_string(slabs * kSlabBytes);
            auto device = open_device(url, {});
            if (!device) return std::unexpected(device.error());
            return OpenedDevice{.device = std::move(*device), .lose = {}, .context = {}};
          }};
}

// A simulated link that is lost after 50,000 requests: more than any test makes before it wants that.
Result<OpenedDevice> open_sim(std::uint32_t slabs) {
  auto device = open_device(
      "sim:latency=20us,bandwidth=10Gbps,lose_after=50000,inner=mem:?size=" + std::to_string(slabs * kSlabBytes), {});
  if (!device) return std::unexpected(device.error());
  Device* raw = device->get();
  auto lose = [raw] {
    auto channel = raw->open_channel();
    PageBuffer buffer;
    std::vector<Request> requests(64, Request{Operation::read, {0}, &buffer, 0});
    while (raw->lost() == 0) run_to_end(**channel, requests);
  };
  return OpenedDevice{.device = std::move(*device), .lose = lose, .context = {}};
}

// A file in a temporary directory that goes with the device.
DeviceUnderTest file_device(std::string name, bool direct, bool asynchronous) {
  return {std::move(name), [direct, asynchronous](std::uint32_t slabs) -> Result<OpenedDevice> {
            std::string directory = "/tmp/hinterland-conformance-XXXXXX";
            if (mkdtemp(directory.data()) == nullptr) return std::unexpected(Error::make(errno, "mkdtemp"));
            auto device = open_file_device({directory + "/far", slabs * kSlabBytes, direct, asynchronous});
            rmdir(directory.c_str());  // empty already: the file has no name any more
            if (!device) return std::unexpected(device.error());
            if (asynchronous && (*device)->info().synchronous)
              return std::unexpected(Error::make(ENOTSUP, "no Linux AIO here"));
            return OpenedDevice{.device = std::move(*device), .lose = {}, .context = {}};
          }};
}

INSTANTIATE_TEST_SUITE_P(Local, DeviceConformance,
                         ::testing::Values(by_url("mem", "mem:"), by_url("zmem_lz4", "zmem:lz4"),
                                           by_url("zmem_zstd", "zmem:zstd"), file_device("file", true, true),
                                           file_device("file_cached", false, false),
                                           file_device("file_blocking", true, false),
                                           DeviceUnderTest{"sim", open_sim},
                                           by_url("sim_of_sim", "sim:latency=5us,inner=sim:latency=5us,inner=mem:")),
                         device_name);

}  // namespace
}  // namespace hinterland::far::testing
