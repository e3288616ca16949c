// hints: what a hint costs where the page is there, and what a hinted page costs where it is not. Run it under
// `hinterland run`; under Linux swap the same program pages without hints. bench/hints/run compares.
#include "hints/figures.hpp"

#include <cstdio>

#include "base/json.hpp"
#include "command/options.hpp"

namespace {

using namespace hints_bench;

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

void declare(bench::Options& options, Work& work) {
  std::vector<std::string> names;
  std::string about = "one of:";
  for (const Figure& known : figures()) {
    names.emplace_back(known.name);
    about += std::string("\n") + known.name + ": " + known.about + " (" + known.unit + ")";
  }
  options.choice("figure", work.figure, names, about);
  options.size("--size", work.size_bytes, "what is paged, of all threads together", "1G");
  options.number("--threads", work.threads, "each on its own part", 1, 1024);
  options.number("--read-ahead", work.read_ahead, "pages, of the sequential figures; else as the runtime chooses", 0,
                 1024);
  options.flag("!--no-hints", work.hints, "the same without hints, by faults");
  options.number("--repeat", work.repeat, "repetitions", 1, 1000);
  options.number("--seconds", work.seconds, "length of one repetition", 0.0001, 3600.0);
  options.text("--shrink", work.shrink,
               "of the fetch figures under hinterland: a command of the shell that takes local memory away from "
               "process $PPID; the far pages are fetched after --grow");
  options.text("--grow", work.grow, "a command of the shell that gives it more than --size again");
}

const char* unit_of(const std::string& name) {
  for (const Figure& known : figures())
    if (name == known.name) return known.unit;
  return "";
}

void print(const Work& work, const Measured& measured) {
  hinterland::Json document{
      {"schema_version", 1},
      {"program", "hints"},
      {"figure", work.figure},
      {"unit", unit_of(work.figure)},
      {"size_bytes", work.size_bytes},
      {"threads", work.threads},
      {"read_ahead", work.read_ahead < 0 ? hinterland::Json() : hinterland::Json(work.read_ahead)},
      {"hints", work.hints},
      {"heard", measured.with_runtime},
      {"accesses", measured.accesses},
      {"pages_in", measured.pages_in},
      {"values", measured.values},
      {"cpu_values", measured.cpu_values},
  };
  std::puts(document.dump(1).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("hints", "Measures hints, and prints as JSON what one costs");
  Work work;
  work.size_bytes = std::size_t{1} << 30;
  declare(options, work);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (work.size_bytes == 0 || work.size_bytes % (std::size_t{4096} * work.threads) != 0) {
    std::fprintf(stderr, "hints: --size must be a multiple of 4 KiB for each thread\n");
    return 2;
  }
  if (kDebugBuild) {
    std::fprintf(stderr,
                 "hints: this is a debug build, and its figures mean nothing. Build with: make bench-build\n");
    return 2;
  }
  try {
    print(work, measure(work));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "hints: %s\n", failure.what());
    return 1;
  }
  return 0;
}
