#include "cli/openmetrics.hpp"

#include <cstdio>
#include <deque>
#include <utility>

#include "cli/figures.hpp"

namespace hinterland::cli {
namespace {

struct Program {       // neither copied nor moved: its histograms are atomic
  std::string labels;  // pid="4711",program="redis-server",far_url="zmem:"
  Figures figures;
};

// Texts of labels and of help: a backslash, a line's end and a quote are written with a backslash.
std::string escaped(const std::string& text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '\\' || letter == '"') safe += '\\';
    safe += letter == '\n' ? ' ' : letter;
  }
  return safe;
}

void begin(std::string& text, const std::string& name, const char* type, const std::string& help) {
  text += "# TYPE " + name + " " + type + "\n# HELP " + name + " " + escaped(help) + "\n";
}

void add_latency(std::string& text, const char* name, const char* help, const std::deque<Program>& programs,
                 LatencyHistogram Figures::* latency) {
  begin(text, name, "summary", help);
  for (const Program& program : programs) {
    const LatencyHistogram& histogram = program.figures.*latency;
    for (double share : {0.5, 0.9, 0.99, 0.999}) {
      char sample[64];
      std::snprintf(sample, sizeof sample, ",quantile=\"%g\"} %.9f\n", share,
                    static_cast<double>(histogram.percentile_ns(share)) / 1e9);
      text += std::string(name) + "{" + program.labels + sample;
    }
    text += std::string(name) + "_count{" + program.labels + "} " + std::to_string(histogram.count()) + "\n";
  }
}

}  // namespace

std::string openmetrics_text(const std::vector<StatView>& views) {
  std::deque<Program> programs;
  for (const StatView& view : views) {
    std::string labels = "pid=\"" + std::to_string(view->pid) + "\",program=\"" + escaped(text_of(view->program)) +
                         "\",far_url=\"" + escaped(text_of(view->far_url)) + "\"";
    Program& program = programs.emplace_back();
    program.labels = std::move(labels);
    program.figures.add(*view);
  }
  std::string text;
  for (std::size_t i = 0; i < kGaugeNames.size(); ++i) {
    std::string name = std::string("hinterland_") + kGaugeNames[i].name;
    begin(text, name, "gauge", kGaugeNames[i].help);
    for (const Program& program : programs)
      text += name + "{" + program.labels + "} " + std::to_string(program.figures.gauges[i]) + "\n";
  }
  for (std::size_t i = 0; i < kCounterNames.size(); ++i) {
    std::string name = std::string("hinterland_") + kCounterNames[i].name;
    begin(text, name, "counter", kCounterNames[i].help);
    for (const Program& program : programs)
      text += name + "_total{" + program.labels + "} " + std::to_string(program.figures.counters[i]) + "\n";
  }
  add_latency(text, "hinterland_fault_latency_seconds", "from reading a fault's message to the wake-up", programs,
              &Figures::fault_latency);
  add_latency(text, "hinterland_fetch_latency_seconds", "of the far device's requests on the path of a fault",
              programs, &Figures::fetch_latency);
  return text + "# EOF\n";
}

}  // namespace hinterland::cli
