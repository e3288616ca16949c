// Regions, of every share, read-ahead, policy and device, created and destroyed by all threads; used as other memory
// is.
#include <algorithm>
#include <array>
#include <cerrno>

#include "worker.hpp"

namespace churn {

void Worker::create_region(Area& area, std::size_t bytes) {
  static constexpr std::array<const char*, 6> kPolicies = {nullptr,   "fifo", "second-chance",
                                                           "learner", "lru",  "priority"};
  // Three of them, and the program's: each stays open once it was named.
  static constexpr std::array<const char*, 6> kDevices = {nullptr, nullptr, nullptr,
                                                          "zmem:", "mem:",  "sim:latency=10us,inner=mem:"};
  hl_region_options options = {.share = random_.one_in(3) ? HL_SHARE_COMMON : random_.below(2u << 20),
                               .rdahead = static_cast<std::int32_t>(random_.below(66)) - 1,
                               .policy = kPolicies[random_.below(kPolicies.size())],
                               .device = kDevices[random_.below(kDevices.size())],
                               .tag = random_.one_in(2) ? "churn" : nullptr};
  int error = hl_region_create(&area.region, bytes, &options);
  // All shares and all regions with options of their own are bounded.
  if (error == EDQUOT || error == ENOSPC) error = hl_region_create(&area.region, bytes, nullptr);
  if (error != 0) fail(all_, mine_, "hl_region_create of %zu bytes: %d, %s", bytes, error, hl_region_error());
  area.kind = Area::Kind::region;
  area.address = static_cast<char*>(area.region.data);
  area.bytes = bytes;
  std::fill_n(area.cells, area.cell_count(), kZeros);
  area.note("region", 0, area.cell_count(), mine_.operations);
  if (random_.one_in(2)) verify_cells(all_, mine_, area, 0, area.cell_count(), "in a new region");
}

void Worker::destroy_region(Area& area) {
  if (int error = hl_region_destroy(&area.region); error != 0)
    fail(all_, mine_, "hl_region_destroy of %zu bytes: %d", area.bytes, error);
}

}  // namespace churn
