// The parsers of what a peer sends: frames on both sides, and each side's half of the handshake. `make fuzz` runs it.
#include <cstdint>

#include "far/tcp/fuzz_random.hpp"
#include "far/tcp/wire_exercise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!hinterland::far::testing::restart_random()) return -1;
  hinterland::far::wire::exercise(std::as_bytes(std::span(data, size)));
  return 0;
}
