// floor: what paging costs when nothing but the kernel's primitives is used; the denominator of our own figures.
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>

#include "command/options.hpp"
#include "floor/calls.hpp"
#include "floor/loopback.hpp"
#include "floor/output.hpp"
#include "floor/paging.hpp"
#include "floor/primitives.hpp"
#include "floor/scaling.hpp"

namespace {

using namespace hinterland;
using namespace hinterland::bench;

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

struct Chosen {
  Settings settings;
  std::vector<std::string> only;
  std::string json;
  bool list = false;
};

void declare(::bench::Options& options, Chosen& chosen) {
  Settings& settings = chosen.settings;
  options.size("--size", settings.total_bytes, "what the loops page over", "1G");
  options.size("--local", settings.local_bytes, "what they may keep resident", "256M");
  options.size("--primitive-size", settings.primitive_bytes, "what the primitives are tried on", "64M");
  options.number("--evict-batch", settings.evict_batch_pages, "pages that one eviction takes", 1, 65536);
  options.number("--repeat", settings.repeat, "repetitions of each figure", 1, 1000);
  options.number("--seconds", settings.seconds, "length of one repetition of a paging loop", 0.0001, 3600.0);
  options.texts("--only", chosen.only, "only figures whose name contains TEXT; several times");
  options.text("--json", chosen.json, "write the figures, each repetition, to this file");
  options.flag("--list", chosen.list, "print the names of the figures, and measure nothing");
}

// What is wrong with the sizes, or nothing.
std::string fault_of(const Settings& settings) {
  std::size_t unit = 64 * kPageSize;  // the longest run
  for (std::size_t bytes : {settings.total_bytes / 2, settings.local_bytes / 2, settings.primitive_bytes})
    if (bytes == 0 || bytes % unit != 0) return "sizes must be multiples of 512K (and --primitive-size of 256K)";
  if (settings.local_bytes >= settings.total_bytes) return "--local must be less than --size, or nothing is paged";
  struct sysinfo memory{};
  sysinfo(&memory);
  std::size_t needed = settings.total_bytes + settings.local_bytes + 2 * settings.primitive_bytes;
  std::size_t there = memory.totalram * memory.mem_unit;
  if (needed > there / 10 * 9)
    return "these sizes need " + std::to_string(needed / kMiB) + " MiB, and this machine has " +
           std::to_string(there / kMiB) + ": give a smaller --size";
  return "";
}

std::vector<Measurement> chosen_measurements(const std::vector<std::string>& only) {
  std::vector<Measurement> all = primitive_measurements();
  std::ranges::move(paging_measurements(), std::back_inserter(all));
  std::ranges::move(loopback_measurements(), std::back_inserter(all));
  std::ranges::move(scaling_measurements(), std::back_inserter(all));
  std::erase_if(all, [&](const Measurement& measurement) {
    return !only.empty() && std::ranges::none_of(only, [&](const std::string& text) {
      return measurement.name.find(text) != std::string::npos;
    });
  });
  return all;
}

std::vector<Figure> measure(const std::vector<Measurement>& measurements, const Settings& settings) {
  std::vector<Figure> figures;
  for (const Measurement& measurement : measurements) {
    show_progress(figures.size(), measurements.size(), measurement.name);
    Figure figure{measurement.name, measurement.unit, {}, ""};
    pin_to(processors().front());
    try {
      figure.values = measurement.measure(settings);
    } catch (const Unavailable& reason) {
      figure.skipped = reason.what();
    }
    figures.push_back(std::move(figure));
  }
  end_progress();
  return figures;
}

int run(const Chosen& chosen) {
  std::vector<Measurement> measurements = chosen_measurements(chosen.only);
  if (measurements.empty()) {
    std::fprintf(stderr, "floor: no figure has that in its name; --list prints them all\n");
    return 2;
  }
  if (chosen.list) {
    for (const Measurement& measurement : measurements) std::puts(measurement.name.c_str());
    return 0;
  }
  if (std::string fault = fault_of(chosen.settings); !fault.empty()) {
    std::fprintf(stderr, "floor: %s\n", fault.c_str());
    return 2;
  }
  if (kDebugBuild) {
    std::fprintf(stderr,
                 "floor: this is a debug build, and its figures mean nothing. Build with: make bench-build\n");
    return 2;
  }
  std::vector<Figure> figures = measure(measurements, chosen.settings);
  print_table(figures);
  if (!chosen.json.empty()) write_json(chosen.json, chosen.settings, figures);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::bench::Options options("floor", "What paging costs when nothing but the kernel's primitives is used");
  Chosen chosen{{kGiB, 256 * kMiB, 64 * kMiB, 256, 5, 0.3}, {}, "", false};
  declare(options, chosen);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  try {
    processors();  // as they are before anything is pinned
    return run(chosen);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "\nfloor: %s\n", failure.what());
    return 1;
  }
}
