// What a sim: device is told by its URL: sim:latency=5us,bandwidth=100Gbps,inner=URL. `inner` comes last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::far {

struct SimSettings {
  std::uint64_t latency_ns = 0;
  std::uint64_t bandwidth_bits_per_s = 0;  // 0: not limited
  double fail_reads = 0;                   // share of reads that complete with EIO, 0 to 1
  double fail_writes = 0;                  // share of writes that complete with EIO
  double corrupt = 0;                      // share of reads that complete with EBADMSG and damaged bytes
  std::uint64_t lose_after = 0;            // requests until the device is lost (ECONNRESET); 0: never
  std::uint64_t seed = 1;                  // the same seed and requests give the same faults
  std::string inner = "mem:";
};

// From what stands behind "sim:". The inner URL is checked too.
Result<SimSettings> parse_sim(std::string_view rest);
// The same where the process is in another folder (url_from()).
std::string sim_from(const std::string& folder, std::string_view rest);

}  // namespace hinterland::far
