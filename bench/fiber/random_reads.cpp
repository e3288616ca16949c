// Random hinted reads by many fibers, or by threads: how much of a device's latency fibers hide. Each read is
// followed by a checksum over the page, as a program would use it. To be run under `hinterland run`; bench/fiber/run
// does.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/json.hpp"
#include "command/options.hpp"
#include "hinterland/fiber.hpp"
#include "hinterland/hint.hpp"

namespace {

constexpr std::size_t kPageWords = 4096 / 8;

struct Work {
  std::size_t size_mib = 256;
  std::size_t reads = 200'000;
  unsigned workers = 1;
  unsigned fibers = 64;
  bool threads = false;
  bool blocking = false;
  bool hints = true;
  bool faults_park = false;
};

std::uint64_t read_at_random(const std::uint64_t* table, const Work& work, std::uint64_t seed, std::size_t reads) {
  std::size_t pages = (work.size_mib << 20) / 4096;
  std::uint64_t random = seed * 2 + 1, sum = 0;
  for (std::size_t i = 0; i < reads; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t* page = table + (random >> 33) % pages * kPageWords;
    if (work.hints) hl::read(page);
    for (std::size_t word = 0; word < kPageWords; word += 8) sum += page[word];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("fiber_reads", "Random hinted reads by fibers or by threads, and prints JSON");
  Work work;
  options.number("--size-mib", work.size_mib, "of the table", 1, 1 << 20);
  options.number("--reads", work.reads, "of all together", 1, 1 << 30);
  options.number("--workers", work.workers, "threads that run fibers, or, with --threads, that read", 1, 1024);
  options.number("--fibers", work.fibers, "that read", 1, 1 << 20);
  options.flag("--threads", work.threads, "no fibers: each thread blocks in its hints");
  options.flag("--blocking", work.blocking, "hints of fibers block their thread instead of parking the fiber");
  options.flag("!--no-hints", work.hints, "by faults");
  options.flag("--faults-park", work.faults_park,
               "fibers declare that faults may park them (hinterland run --fault signal)");
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  std::size_t words = (work.size_mib << 20) / 8;
  std::unique_ptr<std::uint64_t[], decltype(&std::free)> table(  // in whole pages: a hint is about one
      static_cast<std::uint64_t*>(std::aligned_alloc(4096, words * 8)), std::free);
  if (table == nullptr) return 1;
  for (std::size_t i = 0; i < words; ++i) table[i] = i * 0x9E3779B97F4A7C15u;

  std::atomic<std::uint64_t> sum{0};
  unsigned readers = work.threads ? work.workers : work.fibers;
  auto body = [&](unsigned i) {
    std::optional<hl::fibers::faults_may_park> declared;
    if (work.faults_park) declared.emplace();
    sum += read_at_random(table.get(), work, i, work.reads / readers);
  };
  auto begin = std::chrono::steady_clock::now();
  if (work.threads) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < readers; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
  } else {
    hl::fibers::run({.workers = work.workers, .hints_park = !work.blocking}, [&] {
      std::vector<hl::fibers::fiber> fibers;
      for (unsigned i = 0; i < readers; ++i) fibers.emplace_back([&, i] { body(i); });
      for (hl::fibers::fiber& each : fibers) each.join();
    });
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  hinterland::Json document{{"schema_version", 1},
                            {"program", "fiber_reads"},
                            {"readers", work.threads ? "threads" : "fibers"},
                            {"workers", work.workers},
                            {"fibers", work.threads ? 0 : work.fibers},
                            {"hints_park", !work.threads && !work.blocking},
                            {"hints", work.hints},
                            {"faults_park", work.faults_park},
                            {"reads", work.reads / readers * readers},
                            {"seconds", seconds},
                            {"reads_per_second", static_cast<double>(work.reads) / seconds},
                            {"checksum", sum.load()}};
  std::puts(document.dump(1).c_str());
}
