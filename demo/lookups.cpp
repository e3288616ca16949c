// A job of demo/run: a hash table (bench/apps/hashmap/table.hpp, whose find() has the hints) is filled and looked
// keys up in, some of them more often than others. Prints what came of it, and nothing that differs from run to run.
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <hinterland/hint.hpp>

#include "common/hash_order.hpp"
#include "common/random.hpp"
#include "common/zipf.hpp"
#include "hashmap/table.hpp"

namespace {

// As in the benchmark: TrackFM 4.1 measures with it.
constexpr double kSkew = 1.02;
// Keys come in groups, as in a join: with hints, those of a group are fetched side by side.
constexpr std::size_t kTogether = 64;

// A count: it compresses as such data does.
std::uint32_t value_of(std::uint64_t key) { return static_cast<std::uint32_t>(apps::mixed(key) % 1000); }

using Keys = std::array<std::uint32_t, kTogether>;

// What a group of lookups reads first is on its way at once, and then what it reads next.
[[maybe_unused]] void ask_for(const hashmap::Table& table, const Keys& keys) {
  for (std::uint32_t key : keys) hl::prefetch(table.bucket_for(key), sizeof key);
  for (std::uint32_t key : keys) {
    const std::uint32_t* bucket = table.bucket_for(key);
    hl::read(bucket);
    if (const void* entry = table.entry_at(bucket)) hl::prefetch(entry, hashmap::Table::kEntrySize);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t entries = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const std::uint64_t lookups = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (entries == 0 || lookups == 0 || lookups % kTogether != 0 || entries >= UINT32_MAX) {
    std::fputs("usage: demo_lookups ENTRIES LOOKUPS, these in groups of 64\n", stderr);
    return 2;
  }
  hashmap::Table table(entries);
  apps::in_hash_order(entries, hashmap::Table::part_of,
                      [&](std::uint64_t key) { table.insert(static_cast<std::uint32_t>(key), value_of(key)); });
  const apps::Zipf ranks(entries, kSkew);
  const apps::Permutation key_of(entries, 1);
  apps::Random random(1);
  Keys keys;
  std::uint64_t sum = 0, wrong = 0;
  for (std::uint64_t first = 0; first < lookups; first += kTogether) {
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(key_of(ranks.draw(random)));
#ifndef HL_NO_HINTS
    ask_for(table, keys);
#endif
    for (std::uint64_t i = 0; i < kTogether; ++i) {
      const std::uint32_t* value = table.find(keys[i]);
      if (value == nullptr || *value != value_of(keys[i])) ++wrong;
      sum += value == nullptr ? 0 : apps::mixed((first + i) ^ std::uint64_t{*value} << 32);
    }
  }
  std::printf("%" PRIu64 " entries, %" PRIu64 " lookups, %" PRIu64 " of them wrong; check %016" PRIx64 "\n", entries,
              lookups, wrong, sum);
  return wrong == 0 ? 0 : 1;
}
