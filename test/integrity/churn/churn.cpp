// Churn: a program that does everything to its memory that programs do, knows what every byte must be, and looks.
//
//     churn [--total 256M] [--threads 4] [--seconds 10] [--seed N] [--forks 3] [--low 0]
//
// It knows nothing of far memory; run it natively, and under `hinterland run` with little local memory. Exit status
// 0: every byte was right; 1: the first mismatch is on stderr; 2: usage. The same seed gives each thread the same
// operations (their interleaving, and places in the address space, are the kernel's).
#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "worker.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::size_t bytes_total = 256u << 20;
  std::size_t threads = 4;
  double seconds = 10;
  std::uint64_t seed = 0;
  unsigned forks_per_10000 = 3;
  unsigned low_percent = 0;
};

[[noreturn]] void usage(const char* why) {
  std::fprintf(stderr,
               "churn: %s\nusage: churn [--total SIZE] [--threads N] [--seconds S] [--seed N] [--forks PER_10000] "
               "[--low PERCENT]\n",
               why);
  std::exit(2);
}

double number(const char* text, double minimum, double maximum) {
  char* end = nullptr;
  double value = std::strtod(text, &end);
  if (end != text) {
    const char* unit = std::strchr("KMG", *end);
    if (*end != '\0' && unit != nullptr) {
      value *= *end == 'K' ? 1024.0 : *end == 'M' ? 1048576.0 : 1073741824.0;
      ++end;
    }
  }
  if (end == text || *end != '\0' || !(value >= minimum && value <= maximum)) usage(text);
  return value;
}

std::uint64_t default_seed() {
  const char* given = std::getenv("HINTERLAND_TEST_SEED");
  if (given != nullptr) return std::strtoull(given, nullptr, 0);
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1'000'000'000;
}

Options parse(int count, char** words) {
  static const option kLong[] = {{"total", required_argument, nullptr, 't'},
                                 {"threads", required_argument, nullptr, 'n'},
                                 {"seconds", required_argument, nullptr, 's'},
                                 {"seed", required_argument, nullptr, 'x'},
                                 {"forks", required_argument, nullptr, 'f'},
                                 {"low", required_argument, nullptr, 'l'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  options.seed = default_seed();
  for (int letter; (letter = getopt_long(count, words, "", kLong, nullptr)) != -1;) {
    switch (letter) {
      case 't':
        options.bytes_total = static_cast<std::size_t>(number(optarg, 1 << 20, 1e13));
        break;
      case 'n':
        options.threads = static_cast<std::size_t>(number(optarg, 1, 1024));
        break;
      case 's':
        options.seconds = number(optarg, 0.01, 1e6);
        break;
      case 'x':
        options.seed = std::strtoull(optarg, nullptr, 0);
        break;
      case 'f':
        options.forks_per_10000 = static_cast<unsigned>(number(optarg, 0, 10000));
        break;
      case 'l':
        options.low_percent = static_cast<unsigned>(number(optarg, 0, 100));
        break;
      default:
        usage("unknown option");
    }
  }
  if (optind != count) usage(words[optind]);
  return options;
}

// First all memory is taken, so that forks and the rest meet a full house.
std::uint64_t work(const Options& options, const churn::Everything& all, std::size_t number, churn::Gate& gate) {
  std::uint64_t seed = churn::scramble(options.seed ^ churn::scramble(number));
  churn::Worker worker(all, all.threads[number], gate, {options.forks_per_10000, options.low_percent}, seed);
  worker.take_share();
  Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  while (Clock::now() < end) worker.step();
  worker.finish();
  return worker.forks();
}

}  // namespace

int main(int count, char** words) {
  Options options = parse(count, words);
  std::printf("churn: seed %lu, %zu threads, %zu MiB, %g s\n", options.seed, options.threads,
              options.bytes_total >> 20, options.seconds);
  std::fflush(stdout);
  churn::Everything all = churn::make_everything(options.seed, options.bytes_total, options.threads);
  churn::Gate gate;
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> forks(options.threads);
  for (std::size_t i = 0; i < options.threads; ++i)
    threads.emplace_back([&, i] { forks[i] = work(options, all, i, gate); });
  for (std::thread& thread : threads) thread.join();
  churn::verify_counters(all, all.threads[0], "at the end");
  std::uint64_t operations = 0, refused = 0, children = 0, bytes = 0;
  for (const churn::ThreadShadow& thread : all.threads) {
    operations += thread.operations;
    refused += thread.refused;
    bytes += thread.bytes_in_use;
    children += forks[thread.number];
  }
  std::printf("churn: ok, every byte right: %lu operations, %lu forks, %lu calls refused, %lu MiB at the end\n",
              operations, children, refused, bytes >> 20);
  return 0;
}
