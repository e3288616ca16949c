// What computing at the server brings, and what it costs those who page meanwhile (docs/offload.md).
//
//     offload [--size MIB] [--rounds N] [--reads N]
//
// Prints, as name and value a line, medians of milliseconds for going through an array of this size by offload.hpp
// and by a loop, and microseconds of single reads of random pages of another array of half the size, alone and beside
// a thread that has sums computed all the time. bench/offload/run starts it under `hinterland run`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/column.hpp"
#include "hinterland/offload.hpp"
#include "hinterland/offload_scatter.hpp"
#include "hinterland/offload_writes.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Array = std::vector<std::int64_t>;

volatile std::int64_t g_result;  // what is computed is used

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::size_t option(int count, char** words, const char* name, std::size_t otherwise) {
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(words[i], name) == 0) return std::strtoull(words[i + 1], nullptr, 10);
  return otherwise;
}

double part(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

Array numbers(std::size_t mib) {
  Array all(mib * 1024 * 1024 / sizeof(std::int64_t));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i * 2654435761 % 1000003);
  return all;
}

template <typename Work>
void time_of(const char* name, std::size_t rounds, Work work) {
  std::vector<double> took;
  for (std::size_t round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    g_result = static_cast<std::int64_t>(work());
    took.push_back(since(start) / 1000);
  }
  std::printf("%s_ms %.3f\n", name, part(took, 0.5));
}

void time_operations(const Array& all, std::size_t rounds) {
  using hl::far::compare;
  std::mt19937_64 random(1);
  std::vector<std::size_t> indices(10'000);
  for (std::size_t& index : indices) index = random() % all.size();
  Array some(indices.size());
  time_of("sum", rounds, [&] { return hl::far::sum(all); });
  time_of("sum_by_loop", rounds, [&] {
    std::int64_t total = 0;
    for (const std::int64_t each : all) total += each;
    return total;
  });
  time_of("filter_1_in_1000", rounds, [&] { return hl::far::filter(all, compare::less, 1000).size(); });
  time_of("filter_by_loop", rounds, [&] {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] < 1000) found.push_back(i);
    return found.size();
  });
  time_of("gather_10000", rounds, [&] { return hl::far::gather(all, indices, some), some[0]; });
  time_of("gather_by_loop", rounds, [&] {
    for (std::size_t i = 0; i < indices.size(); ++i) some[i] = all[indices[i]];
    return some[0];
  });
  time_of("median", rounds, [&] { return *hl::far::median(all); });
}

// Into new memory each time.
void time_copies(const Array& all, std::size_t rounds) {
  using Column = hl::far::column<std::int64_t>;
  time_of("copy", rounds, [&] {
    Column made(all.size());
    hl::far::copy(all, made);
    return made.size();
  });
  time_of("copy_by_loop", rounds, [&] {
    Column made(all.size());
    std::copy(all.begin(), all.end(), made.begin());
    return made.size();
  });
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] % 2 == 0) indices.push_back(i);
  time_of("select_1_in_2", rounds, [&] {
    Column made(indices.size());
    hl::far::select(all, indices, made);
    return made.size();
  });
  time_of("select_by_loop", rounds, [&] {
    Column made(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) made[i] = all[indices[i]];
    return made.size();
  });
}

void time_writes(std::size_t size, std::size_t rounds) {
  std::mt19937_64 random(3);
  Array all(size);
  time_of("fill", rounds, [&] { return hl::far::fill(all, static_cast<std::int64_t>(random() | 1)), all.size(); });
  time_of("fill_by_loop", rounds,
          [&] { return std::fill(all.begin(), all.end(), static_cast<std::int64_t>(random() | 1)), all.size(); });
  for (const std::size_t count : {std::size_t{10'000}, size / 16}) {
    std::vector<std::size_t> indices(count);
    const Array values(count, 7);
    const std::string name = "scatter_" + (count == 10'000 ? std::to_string(count) : std::string("1_in_16"));
    auto choose = [&] {
      for (std::size_t& index : indices) index = random() % size;
    };
    time_of(name.c_str(), rounds, [&] { return choose(), hl::far::scatter(values, indices, all), all.size(); });
    time_of((name + "_by_loop").c_str(), rounds, [&] {
      choose();
      for (std::size_t i = 0; i < count; ++i) all[indices[i]] = values[i];
      return all.size();
    });
  }
}

void time_reads(const Array& pages, std::size_t reads, const char* name) {
  std::mt19937_64 random(2);
  std::vector<double> took;
  for (std::size_t i = 0; i < reads; ++i) {
    const std::size_t at = random() % pages.size();
    const Clock::time_point start = Clock::now();
    g_result = *const_cast<const volatile std::int64_t*>(&pages[at]);
    const double time = since(start);
    if (time > 2) took.push_back(time);  // it was not there
  }
  if (took.empty()) return;
  std::printf("%s_p50_us %.1f\n", name, part(took, 0.5));
  std::printf("%s_p99_us %.1f\n", name, part(took, 0.99));
}

// Single reads while another thread does the same work again and again.
template <typename Work>
void beside(const char* name, const Array& pages, std::size_t reads, Work work) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) work();
  });
  time_reads(pages, reads, name);
  stop.store(true);
  other.join();
}

}  // namespace

int main(int count, char** words) {
  const std::size_t mib = option(count, words, "--size", 512), rounds = option(count, words, "--rounds", 5);
  const std::size_t reads = option(count, words, "--reads", 20'000);
  const Array all = numbers(mib), others = numbers(mib / 2);
  time_operations(all, rounds);
  time_copies(all, rounds);
  time_writes(all.size(), rounds);
  time_reads(others, reads, "read_alone");
  // What a busy thread costs by itself.
  beside("read_beside_a_loop", others, reads, [] { g_result = g_result + 1; });
  beside("read_beside_sums", others, reads, [&all] { g_result = hl::far::sum(all); });
  return 0;
}
