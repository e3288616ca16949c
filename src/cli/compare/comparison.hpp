// What `hinterland compare` found, and how it is told: as text, Markdown, JSON and a page for a browser.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/compare/measured_run.hpp"

namespace hinterland::cli {

// All runs of one way, the oldest first.
struct Series {
  Way way;
  std::vector<Measured> runs;
  std::string failure;  // why there are no more runs; "" when all were made

  // Of the runs; 0 without any.
  double median_s() const;
  double least_s() const;
  double most_s() const;
  std::uint64_t peak_bytes() const;  // the most
  std::uint64_t pages_in() const;    // the median
  double waited_s() const;           // the median
  unsigned kills_diverted() const;   // the most
};

struct Comparison {
  std::string program;         // as given, without its arguments, which may hold secrets
  std::vector<Series> series;  // the first is native
  std::string no_swap;         // why swap is not among them; "" when it is, or was not asked for

  const Series& native() const { return series.front(); }
  // Time and memory against native; 0 when there is none to compare with.
  double slow_down(const Series& one) const;
  double memory_share(const Series& one) const;
};

std::string comparison_text(const Comparison& all);
std::string comparison_markdown(const Comparison& all);
std::string comparison_html(const Comparison& all);
Json comparison_json(const Comparison& all);
// What it means, in sentences, one a line, and what to do next.
std::vector<std::string> verdict(const Comparison& all);

}  // namespace hinterland::cli
