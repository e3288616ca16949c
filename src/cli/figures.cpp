#include "cli/figures.hpp"

#include <algorithm>
#include <span>

#include "base/clock.hpp"

namespace hinterland::cli {

std::uint64_t Figures::faults() const {
  const Figures& me = *this;
  return me[Counter::faults_first_touch] + me[Counter::faults_read] + me[Counter::faults_write] +
         me[Counter::faults_write_protect] + me[Counter::faults_refault] + me[Counter::faults_spurious];
}

void Figures::add(const StatPage& page) {
  // relaxed: figures are independent of each other
  for (std::size_t i = 0; i < counters.size(); ++i) counters[i] += page.counters[static_cast<Counter>(i)];
  for (std::size_t i = 0; i < gauges.size(); ++i) gauges[i] += page.gauges[i].load(std::memory_order_relaxed);
  fault_latency.merge(page.fault_latency);
  fetch_latency.merge(page.fetch_latency);
}

Json counters_json(const Figures& figures) {
  Json json = Json::object();
  for (std::size_t i = 0; i < figures.counters.size(); ++i) json[kCounterNames[i].name] = figures.counters[i];
  return json;
}

Json gauges_json(const Figures& figures) {
  Json json = Json::object();
  for (std::size_t i = 0; i < figures.gauges.size(); ++i) json[kGaugeNames[i].name] = figures.gauges[i];
  return json;
}

Json latency_json(const LatencyHistogram& histogram) {
  return {{"count", histogram.count()},
          {"p50_ns", histogram.percentile_ns(0.50)},
          {"p90_ns", histogram.percentile_ns(0.90)},
          {"p99_ns", histogram.percentile_ns(0.99)},
          {"p999_ns", histogram.percentile_ns(0.999)},
          {"max_ns", histogram.percentile_ns(1.0)}};
}

// What the page's policy says of itself: whoever owns the page may have written anything.
std::vector<std::pair<std::string, std::uint64_t>> policy_figures(const StatPage& page) {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  std::uint32_t count = std::min(page.policy_report.count, PolicyReport::kFiguresMax);
  for (const PolicyReport::Figure& figure : std::span(page.policy_report.figures).first(count))
    found.emplace_back(text_of(figure.name), figure.value);
  return found;
}

Json policy_figures_json(const StatPage& page) {
  Json json = Json::object();
  for (const auto& [name, value] : policy_figures(page)) json[name.c_str()] = value;
  return json;
}

Json program_json(const StatPage& page) {
  Figures figures;
  figures.add(page);
  std::uint64_t ended_ns = page.ended_ns.load(std::memory_order_relaxed);
  std::uint64_t until_ns = ended_ns != 0 ? ended_ns : now_ns();
  return {{"pid", page.pid},
          {"program", text_of(page.program)},
          {"far_url", text_of(page.far_url)},
          {"policy", text_of(page.policy)},
          {"policy_text", text_of(page.policy_report.text)},
          {"policy_figures", policy_figures_json(page)},
          {"age_s", static_cast<double>(until_ns - page.started_ns) / 1e9},
          {"ended_in_order", ended_ns != 0},
          {"gauges", gauges_json(figures)},
          {"counters", counters_json(figures)},
          {"fault_latency", latency_json(figures.fault_latency)},
          {"fetch_latency", latency_json(figures.fetch_latency)}};
}

}  // namespace hinterland::cli
