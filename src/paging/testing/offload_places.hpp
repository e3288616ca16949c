// Where a test of what devices do with far pages takes place: over mem:, or at a server that offers it or does not.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>

#include "far/test_support.hpp"
#include "paging/testing/offload_twins.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {

struct OffloadPlace {
  const char* name;
  bool at_server, offers;
  bool faults_by_signal = false;
};
inline void PrintTo(const OffloadPlace& place, std::ostream* out) { *out << place.name; }
inline std::string name_of(const ::testing::TestParamInfo<OffloadPlace>& place) { return place.param.name; }

class OffloadPlaces : public ::testing::TestWithParam<OffloadPlace> {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    seed_ = far::testing::test_seed();
    std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    options_.faults_by_signal = GetParam().faults_by_signal;
    if (!GetParam().at_server) return;
    ServerOptions serving = offload_server_options();
    serving.compute = GetParam().offers;
    server_ = std::make_unique<ServerProcess>(serving);
    options_.far_url = server_->url();
  }
  std::uint64_t seed_ = 0;
  RealPagerOptions options_;
  std::unique_ptr<ServerProcess> server_;
};

// The same at a server that offers it.
class AtOffloadServer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    server_ = std::make_unique<ServerProcess>(offload_server_options());
    options_.far_url = server_->url();
  }
  RealPagerOptions options_;
  std::unique_ptr<ServerProcess> server_;
};

}  // namespace hinterland::testing
