// The figures of a statistics page as JSON and as text: the report, `stat` and the summary of `run -v`.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/stats.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {

inline constexpr int kSchemaVersion = 1;

// A copy of a page's figures at one moment, or the sum of several.
struct Figures {
  std::array<std::uint64_t, static_cast<std::size_t>(Counter::count)> counters{};
  std::array<std::uint64_t, static_cast<std::size_t>(Gauge::count)> gauges{};
  LatencyHistogram fault_latency, fetch_latency;

  std::uint64_t operator[](Counter counter) const { return counters[static_cast<std::size_t>(counter)]; }
  std::uint64_t operator[](Gauge gauge) const { return gauges[static_cast<std::size_t>(gauge)]; }
  std::uint64_t faults() const;  // of all kinds
  void add(const StatPage& page);
};

Json counters_json(const Figures& figures);
Json gauges_json(const Figures& figures);
Json latency_json(const LatencyHistogram& histogram);
// What its policy counts for itself, in its order; at most PolicyReport::kFiguresMax.
std::vector<std::pair<std::string, std::uint64_t>> policy_figures(const StatPage& page);
Json program_json(const StatPage& page);  // everything about one process

}  // namespace hinterland::cli
