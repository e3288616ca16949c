// Open load: requests come at times that were drawn before, whether or not earlier ones were answered, as those of
// many users do. A latency counts from the time at which its request was due, so a server that stalls is charged with
// all that waits for it (nothing is omitted that a client which waits for replies would not have sent).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "openload/connection.hpp"

namespace openload {

struct Work {
  std::string socket;
  std::uint64_t keys = 0;
  std::size_t value_bytes = 0;
  double rate_per_second = 0;  // mean; the times between requests are exponential
  double seconds = 0;
  double warm_up_seconds = 0;  // requests due in it are sent and checked, and not in the latencies
  double set_share = 0;        // of the requests; the others are GETs
  unsigned connections = 0;
  std::uint64_t seed = 1;
  bool filled = false;  // every key is there
  double skew = 0;      // of Zipf's distribution of keys; 0: each as often as any other
};

struct Done {
  std::vector<std::uint64_t> get_ns, set_ns;  // latencies, sorted
  double seconds = 0;                         // from the end of the warm-up to the last reply
  std::uint64_t checksum = 0;                 // of keys and kinds in their order: the same for the same work
};

// SETs every key, as fast as the server takes them. Throws std::runtime_error; so does run().
void fill(const Work& work);

// Throws also when a value is not the key's, or when replies are missing 30 s after the last request was due.
Done run(const Work& work);

// The latency that `share` of them do not exceed; 0 when there are none.
std::uint64_t percentile(const std::vector<std::uint64_t>& sorted, double share);

}  // namespace openload
