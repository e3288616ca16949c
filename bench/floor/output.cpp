#include "floor/output.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/json.hpp"
#include "floor/calls.hpp"

namespace hinterland::bench {
namespace {

Json document_of(const Figure& figure) {
  Json document{{"name", figure.name}, {"unit", figure.unit}};
  if (!figure.skipped.empty()) {
    document["skipped"] = figure.skipped;
    return document;
  }
  auto [least, most] = std::minmax_element(figure.values.begin(), figure.values.end());
  document["median"] = median(figure.values);
  document["min"] = *least;
  document["max"] = *most;
  document["values"] = figure.values;
  return document;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void print_table(const std::vector<Figure>& figures) {
  std::printf("%-62s %10s %10s %10s\n", "figure", "median", "least", "most");
  for (const Figure& figure : figures) {
    if (!figure.skipped.empty()) {
      std::printf("%-62s left out: %s\n", figure.name.c_str(), figure.skipped.c_str());
      continue;
    }
    auto [least, most] = std::minmax_element(figure.values.begin(), figure.values.end());
    std::printf("%-62s %10.0f %10.0f %10.0f %s\n", figure.name.c_str(), median(figure.values), *least, *most,
                figure.unit.c_str());
  }
}

void write_json(const std::string& path, const Settings& settings, const std::vector<Figure>& figures) {
  utsname system{};
  uname(&system);
  Json document{
      {"schema_version", 1},
      {"program", "floor"},
      {"kernel", system.release},
      {"processors", processors().size()},
      {"options",
       {{"total_bytes", settings.total_bytes},
        {"local_bytes", settings.local_bytes},
        {"primitive_bytes", settings.primitive_bytes},
        {"evict_batch_pages", settings.evict_batch_pages},
        {"repeat", settings.repeat},
        {"seconds", settings.seconds}}},
  };
  document["figures"] = Json::array();
  for (const Figure& figure : figures) document["figures"].push_back(document_of(figure));
  std::ofstream file(path);
  file << document.dump(1) << "\n";
  if (!file.flush()) throw Failed("cannot write " + path);
}

void show_progress(std::size_t done, std::size_t of, const std::string& name) {
  static const double started = now_ns();
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\x1b[K%zu/%zu %s", done, of, name.c_str());
  if (done > 0) {
    double left_seconds = (now_ns() - started) / 1e9 / static_cast<double>(done) * static_cast<double>(of - done);
    std::fprintf(stderr, "  (about %.0f s left)", left_seconds);
  }
}

void end_progress() {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace hinterland::bench
