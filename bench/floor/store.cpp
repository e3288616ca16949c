#include "floor/store.hpp"

#include <cstdint>
#include <memory>

#include "floor/figure.hpp"

namespace hinterland::bench {

Mapping& filled_store(std::size_t bytes) {
  static std::unique_ptr<Mapping> store;
  if (store && store->bytes() == bytes) return *store;
  store.reset();
  store = std::make_unique<Mapping>(bytes);
  Random random(7);
  for (std::size_t page = 0; page < store->pages(); ++page) {
    auto* words = reinterpret_cast<std::uint64_t*>(store->page(page));
    for (std::size_t i = 1; i < kPageSize / sizeof *words; ++i) words[i] = random.next();
    words[0] = page;
  }
  return *store;
}

}  // namespace hinterland::bench
