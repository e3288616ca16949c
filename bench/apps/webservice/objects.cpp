#include "webservice/objects.hpp"

#include <cstring>

#include "common/random.hpp"

namespace webservice {

Objects::Objects(std::size_t count, std::uint64_t seed) : bytes_(count * kObjectBytes) {
  for (std::size_t i = 0; i < count; ++i) make(i, seed, &bytes_[i * kObjectBytes]);
}

// In each 64 bytes, 32 are random and 32 are the same everywhere.
void Objects::make(std::size_t number, std::uint64_t seed, std::byte* to) {
  apps::Random random(seed, number);
  for (std::size_t at = 0; at < kObjectBytes; at += 64) {
    for (std::size_t word = 0; word < 32; word += 8) {
      std::uint64_t value = random.next();
      std::memcpy(to + at + word, &value, 8);
    }
    std::memcpy(to + at + 32, "as it stands in a hundred others", 32);
  }
}

}  // namespace webservice
