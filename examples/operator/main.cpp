// A question about a far array that only this program asks, computed where the array is.
//
//     operator [MIB]     prints what it found, and on standard error how long it took, and the same by a loop
//
// The same with all of it local, and at a server that does not have the operator (docs/offload.md).
#include <hinterland/operator.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "longest_trips.h"

namespace {

constexpr hl_operator kLongestTrips = LONGEST_TRIPS;

void put_together(longest_trip* all, const longest_trip& part) {
  if (part.count != 0 && (all->count == 0 || part.minutes > all->minutes)) {
    all->where = part.where;
    all->minutes = part.minutes;
  }
  all->count += part.count;
}

longest_trip by_operator(const std::vector<trip>& trips, std::uint32_t from) {
  longest_trip all{};
  hl::far::apply<longest_trip>(
      kLongestTrips, from, trips,
      [&all](std::size_t, std::size_t, const longest_trip& part) { put_together(&all, part); });
  return all;
}

longest_trip by_loop(const std::vector<trip>& trips, std::uint32_t from) {
  longest_trip all{};
  find_longest_trip(&from, 0, trips.data(), trips.size() * sizeof(trip), &all);
  return all;
}

template <typename Work>
longest_trip timed(const char* name, Work work) {
  const auto start = std::chrono::steady_clock::now();
  const longest_trip result = work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "%-16s %9.2f ms\n", name, took.count());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  std::vector<trip> trips(mib * 1024 * 1024 / sizeof(trip));
  for (std::size_t i = 0; i < trips.size(); ++i) {
    const auto mixed = static_cast<std::uint32_t>(i * 2654435761);
    trips[i] = {mixed % 100, mixed / 100 % 100, mixed / 7 % 100'003, 1 + mixed % 4,
                static_cast<double>(mixed % 1000)};
  }
  const std::uint32_t city = 42;
  const longest_trip found = timed("by the operator", [&] { return by_operator(trips, city); });
  const longest_trip looped = timed("by a loop", [&] { return by_loop(trips, city); });
  std::printf("%llu trips from %u, the longest of %llu minutes\n", static_cast<unsigned long long>(found.count), city,
              static_cast<unsigned long long>(found.minutes));
  return found.count == looped.count && found.where == looped.where && found.minutes == looped.minutes ? 0 : 1;
}
