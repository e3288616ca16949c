// Random numbers for fuzz targets that repeat: an input that failed fails again.
#pragma once

#include <sodium.h>

#include <cstddef>
#include <cstdint>

namespace hinterland::far::testing {

inline std::uint64_t g_fuzz_random = 1;

inline void repeatable_bytes(void* buffer, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(buffer);
  for (std::size_t i = 0; i < size; ++i) {
    g_fuzz_random = g_fuzz_random * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<unsigned char>(g_fuzz_random >> 56);
  }
}

// Before each input. The same numbers each time.
inline bool restart_random() {
  static const bool ready = [] {
    static randombytes_implementation repeatable = {[] { return "repeatable"; },
                                                    []() -> std::uint32_t {
                                                      std::uint32_t value;
                                                      repeatable_bytes(&value, sizeof value);
                                                      return value;
                                                    },
                                                    nullptr,
                                                    nullptr,
                                                    repeatable_bytes,
                                                    nullptr};
    return randombytes_set_implementation(&repeatable) == 0 && sodium_init() >= 0;
  }();
  g_fuzz_random = 1;
  return ready;
}

}  // namespace hinterland::far::testing
