// Fiber libraries side by side: ours, and Boost.Fiber where it is installed. Prints JSON: median, least and most of
// the samples.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/json.hpp"
#include "command/options.hpp"
#include "fiber/contest.hpp"

namespace hinterland::bench {

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm.ignore(64, ' ') >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace hinterland::bench

namespace {

using namespace hinterland::bench;

hinterland::Json summary(std::vector<double> samples, const std::string& unit) {
  std::sort(samples.begin(), samples.end());
  return {
      {"unit", unit}, {"median", samples[samples.size() / 2]}, {"least", samples.front()}, {"most", samples.back()}};
}

// In a child: what a library keeps from one sample must not reach the next (Boost.Fiber's work stealing can be set up
// once in a process).
std::vector<FiberFigure> sample_in_child(std::vector<FiberFigure> (*sample)()) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot create a pipe");
  pid_t child = fork();
  if (child == 0) {
    hinterland::Json values;
    for (const FiberFigure& figure : sample()) values.push_back({figure.name, figure.value, figure.unit});
    std::string text = values.dump();
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text(1 << 16, '\0');
  ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (size <= 0) throw std::runtime_error("a sample failed");
  std::vector<FiberFigure> figures;
  bool whole = false;
  for (const hinterland::Json& value :
       hinterland::Json::parse(text.substr(0, static_cast<std::size_t>(size)), &whole))
    figures.push_back({value.elements()[0].text(), value.elements()[1].number(), value.elements()[2].text()});
  if (!whole) throw std::runtime_error("a sample ended in the middle of its figures");
  return figures;
}

struct Library {
  const char* name;
  std::vector<FiberFigure> (*sample)();
};

// In turns, so that what else the machine does meets all of them.
hinterland::Json measure(const std::vector<Library>& libraries, int repeats) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> values;  // by library and figure
  std::map<std::string, std::string> units;
  for (int i = 0; i < repeats; ++i)
    for (const Library& library : libraries)
      for (const FiberFigure& figure : sample_in_child(library.sample)) {
        values[{library.name, figure.name}].push_back(figure.value);
        units[figure.name] = figure.unit;
      }
  hinterland::Json figures;
  for (const auto& [names, samples] : values)
    figures[names.first][names.second] = summary(samples, units[names.second]);
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("fiber", "Measures fiber libraries side by side, and prints JSON");
  int repeats = 5;
  options.number("--repeats", repeats, "samples of each figure", 1, 1000);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
#ifndef NDEBUG
  std::fprintf(stderr, "fiber: this is a debug build, and its figures mean nothing. Build with: make bench-build\n");
  return 2;
#endif
  hinterland::Json document{{"schema_version", 1}, {"program", "fiber"}, {"repeats", repeats}};
  std::vector<Library> libraries{{"hinterland", measure_hinterland}};
#ifdef HINTERLAND_BENCH_BOOST
  libraries.push_back({"boost.fiber", measure_boost});
#endif
  document["libraries"] = measure(libraries, repeats);
  std::puts(document.dump(1).c_str());
}
