// Fibers whose faults park, around the calls of a far map: within them its lock is held, which belongs to the thread,
// and nobody may leave that. Hints in its callbacks likewise. Values are checked, and what is printed is the same
// natively.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/hint.hpp"
#include "hinterland/object_map.hpp"

namespace {

using namespace hl::fibers;

constexpr std::uint64_t kKeys = 300'000, kFibers = 32, kCalls = 100;

struct Item {
  std::uint64_t words[8];
};
Item item_of(std::uint64_t id) {
  Item item;
  for (std::uint64_t& word : item.words) word = id * 3 + 1;
  return item;
}

void visit(hl::far::unordered_map<std::uint64_t, Item>& map, std::uint64_t seed, std::uint64_t& sum) {
  const faults_may_park declared;
  std::vector<std::uint64_t> beside(100'000, seed);
  std::uint64_t state = seed + 1;
  for (std::uint64_t call = 0; call < kCalls; ++call) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t key = (state >> 33) % kKeys;
    if (call % 4 == 0) map.insert_or_assign(key, item_of(key));
    if (call % 4 == 1)
      std::as_const(map).visit(key, [&](const Item&) {
        hl::hint(&beside[key % beside.size()], {.size = sizeof(std::uint64_t)});
        sum += beside[key % beside.size()];
      });
    const std::optional<Item> found = map.find(key);
    if (!found || found->words[7] != key * 3 + 1)
      std::printf("key %llu is damaged\n", (unsigned long long)key), std::exit(1);
    sum += found->words[0];
  }
}

}  // namespace

int main() {
  hl::far::unordered_map<std::uint64_t, Item> map;
  for (std::uint64_t key = 0; key < kKeys; ++key) map.insert(key, item_of(key));
  std::vector<std::uint64_t> sums(kFibers);
  run({.workers = 2}, [&] {
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < kFibers; ++i) fibers.emplace_back([&map, &sums, i] { visit(map, i, sums[i]); });
    for (fiber& each : fibers) each.join();
  });
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  std::printf("%zu keys, sum %llu\n", map.size(), static_cast<unsigned long long>(total));
}
