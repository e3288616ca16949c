// libFuzzer target for the wire parser and the key exchange. Not built by default:
//
//   cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DHINTERLAND_FUZZ=ON
//   ninja -C build/fuzz wire_fuzz && build/fuzz/bin/wire_fuzz build/fuzz/corpus src/far/tcp/wire_fuzz_seeds
//
// (make the corpus folder first: new inputs go to the first folder, so that the seeds in the tree stay as they are).
#include <sodium.h>

#include <cstdint>

#include "far/tcp/wire_exercise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int ready = sodium_init();
  if (ready < 0) return -1;
  hinterland::far::wire::exercise(std::as_bytes(std::span(data, size)));
  return 0;
}
