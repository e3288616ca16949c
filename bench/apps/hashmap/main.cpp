// hashmap: looks keys up in a hash table, some much more often than others (TrackFM 4.1; AIFM 8.2.1).
#include <algorithm>
#include <hinterland/hint.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/app.hpp"
#include "common/hash_order.hpp"
#include "common/team.hpp"
#include "common/zipf.hpp"
#include "hashmap/table.hpp"

namespace {

using hashmap::Table;

// Unless said otherwise: a lookup takes a hundred times as long where memory is far.
constexpr std::size_t kEntriesALookup = 32;

struct Shape {
  double skew = 1.02;
  std::uint64_t lookups = 0;  // 0: one for 32 entries
};

std::uint32_t value_of(std::uint32_t key, std::uint64_t seed) {
  return static_cast<std::uint32_t>(apps::mixed(key ^ seed << 32));
}

// Keys that one hint is for: a page of them.
constexpr std::size_t kTraceBlock = 1024;

// Which keys are looked up. Drawn before, because drawing takes longer than a lookup; it is read in order.
std::vector<std::uint32_t> draw_trace(std::size_t entries, std::size_t lookups, double skew, std::uint64_t seed) {
  apps::Zipf ranks(entries, skew);
  apps::Permutation key_of(entries, seed);
  apps::Random random(seed, 1);
  std::vector<std::uint32_t> trace(lookups);
  for (std::uint32_t& key : trace) key = static_cast<std::uint32_t>(key_of(ranks.draw(random)));
  return trace;
}

std::uint64_t look_up(const Table& table, const std::vector<std::uint32_t>& trace, apps::Share part) {
  std::uint64_t sum = 0;
  for (std::size_t first = part.first; first < part.last; first += kTraceBlock) {
    const std::size_t end = std::min(part.last, first + kTraceBlock);
    hl::hint(&trace[first], {.size = (end - first) * sizeof trace[first], .seq = true});
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t* value = table.find(trace[i]);
      if (value == nullptr) throw std::runtime_error("key " + std::to_string(trace[i]) + " is not in the table");
      sum += apps::mixed(i ^ std::uint64_t{*value} << 32);
    }
  }
  return sum;
}

// The same without the table.
std::uint64_t expected(const std::vector<std::uint32_t>& trace, std::uint64_t seed) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < trace.size(); ++i)
    sum += apps::mixed(i ^ std::uint64_t{value_of(trace[i], seed)} << 32);
  return sum;
}

apps::Outcome work(apps::App& app, const apps::Settings& settings, const Shape& shape) {
  // Entries take their space, and lookups that of their keys.
  std::size_t trace_bytes = shape.lookups * sizeof(std::uint32_t);
  if (trace_bytes > settings.size_bytes / 2)
    throw std::invalid_argument("the keys of so many --lookups take more than half of --size: give fewer, or more");
  std::size_t entries = shape.lookups == 0 ? settings.size_bytes * kEntriesALookup /
                                                 (kEntriesALookup * Table::kEntryBytes + sizeof(std::uint32_t))
                                           : (settings.size_bytes - trace_bytes) / Table::kEntryBytes;
  if (entries >= UINT32_MAX) throw std::invalid_argument("--size has more entries than a table can have (2^32 - 1)");
  std::size_t lookups = shape.lookups == 0 ? entries / kEntriesALookup : shape.lookups;

  Table table(entries);
  apps::in_hash_order(entries, Table::part_of, [&](std::uint64_t key) {
    table.insert(static_cast<std::uint32_t>(key), value_of(static_cast<std::uint32_t>(key), settings.seed));
  });
  std::vector<std::uint32_t> trace = draw_trace(entries, lookups, shape.skew, settings.seed);
  std::vector<std::uint64_t> sums(settings.threads);
  app.measure([&] {
    apps::on_threads(settings.threads,
                     [&](unsigned i) { sums[i] = look_up(table, trace, apps::share(lookups, i, settings.threads)); });
  });
  apps::Outcome outcome{.footprint_bytes = entries * Table::kEntryBytes + lookups * sizeof(std::uint32_t),
                        .operations = lookups,
                        .check = std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}),
                        .figures = {{"entries", entries}, {"skew", shape.skew}}};
  if (settings.verify && outcome.check != expected(trace, settings.seed))
    throw std::runtime_error("--verify: the lookups have not found the values that were inserted");
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("hashmap", "Looks keys up in a hash table");
  Shape shape;
  app.options().number("--skew", shape.skew, "of Zipf's distribution of keys", 0.01, 10.0);
  app.options().number("--lookups", shape.lookups, "of all threads together; 0: one for 32 entries", 0,
                       std::uint64_t{1} << 40);
  return app.run(argc, argv, [&](const apps::Settings& settings) { return work(app, settings, shape); });
}
