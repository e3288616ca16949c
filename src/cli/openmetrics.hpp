// Figures of running programs as OpenMetrics text (openmetrics.io, version 1.0.0), for Prometheus and its
// node_exporter.
#pragma once

#include <string>
#include <vector>

#include "cli/running.hpp"

namespace hinterland::cli {

// One family for each gauge, counter and latency, one sample for each program, and the mark of the end.
std::string openmetrics_text(const std::vector<StatView>& views);

}  // namespace hinterland::cli
