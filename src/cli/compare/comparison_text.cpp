// The comparison for people: a table with bars, the same in Markdown, and a page for a browser.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/size.hpp"
#include "cli/compare/comparison.hpp"

namespace hinterland::cli {
namespace {

constexpr unsigned kBarWidth = 24;

struct Cells {
  std::string name, time, spread, times, peak, pages;
};

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Cells cells_of(const Comparison& all, const Series& one) {
  Cells cells{one.way.name(), "", "", "", "", ""};
  if (!one.failure.empty()) {
    cells.time = one.failure;
    return cells;
  }
  cells.time = number("%.2f s", one.median_s());
  cells.spread = number("%.2f", one.least_s()) + " to " + number("%.2f", one.most_s());
  cells.times = number("%.2f", all.slow_down(one));
  cells.peak = rounded_size_text(one.peak_bytes());
  cells.pages = one.way.kind == Way::Kind::native ? "-" : std::to_string(one.pages_in());
  return cells;
}

bool prints_blocks() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && value[0] != '\0')
      return std::strstr(value, "UTF-8") != nullptr || std::strstr(value, "utf8") != nullptr;
  return false;
}

double longest_of(const Comparison& all) {
  double longest = 0;
  for (const Series& one : all.series) longest = std::max(longest, one.median_s());
  return longest;
}

std::string bar_of(const Comparison& all, const Series& one) {
  double longest = longest_of(all);
  if (longest <= 0 || one.runs.empty()) return "";
  auto length = static_cast<unsigned>(std::lround(one.median_s() / longest * kBarWidth));
  std::string bar;
  for (unsigned i = 0; i < std::max(length, 1u); ++i) bar += prints_blocks() ? "\u2588" : "#";
  return bar;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '&')
      safe += "&amp;";
    else
      safe += letter;
  }
  return safe;
}

// A bar of time and one of memory for each way, both against the largest.
std::string html_bars(const Comparison& all) {
  double longest = std::max(longest_of(all), 1e-9), largest = 1;
  for (const Series& one : all.series) largest = std::max(largest, static_cast<double>(one.peak_bytes()));
  constexpr int kRow = 54, kLeft = 240, kWidth = 420;
  std::string bars = "<svg width=\"800\" height=\"" + std::to_string(kRow * all.series.size()) +
                     "\" role=\"img\" aria-label=\"time and memory of each way\">\n";
  int top = 0;
  for (const Series& one : all.series) {
    char line[512];
    double time = one.median_s() / longest * kWidth,
           memory = static_cast<double>(one.peak_bytes()) / largest * kWidth;
    std::snprintf(
        line, sizeof line,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>"
        "<rect class=\"time\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"18\"/><text x=\"%.0f\" y=\"%d\">%.2f s</text>"
        "<rect class=\"memory\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"18\"/><text x=\"%.0f\" "
        "y=\"%d\">%s</text>\n",
        kLeft - 10, top + 27, escaped(one.way.name()).c_str(), kLeft, top + 4, time, kLeft + time + 6, top + 18,
        one.median_s(), kLeft, top + 24, memory, kLeft + memory + 6, top + 38,
        rounded_size_text(one.peak_bytes()).c_str());
    bars += line;
    top += kRow;
  }
  return bars + "</svg>\n";
}

}  // namespace

std::string comparison_text(const Comparison& all) {
  char line[512];
  std::snprintf(line, sizeof line, "%-30s %10s  %-16s %8s  %10s  %9s\n", "", "time", "least to most", "x native",
                "resident", "pages in");
  std::string text = line;
  for (const Series& one : all.series) {
    Cells cells = cells_of(all, one);
    if (!one.failure.empty()) {
      std::snprintf(line, sizeof line, "%-30s    the program %s\n", cells.name.c_str(), one.failure.c_str());
      text += line;
      continue;
    }
    std::snprintf(line, sizeof line, "%-30s %10s  %-16s %8s  %10s  %9s  ", cells.name.c_str(), cells.time.c_str(),
                  cells.spread.c_str(), cells.times.c_str(), cells.peak.c_str(), cells.pages.c_str());
    text += line + bar_of(all, one) + "\n";
  }
  text += "\n";
  for (const std::string& each : verdict(all)) text += each + "\n";
  return text;
}

std::string comparison_markdown(const Comparison& all) {
  std::string text =
      "| way | time, median (least to most) | times native | resident | pages in |\n|---|---|---|---|---|\n";
  for (const Series& one : all.series) {
    Cells cells = cells_of(all, one);
    std::string spread = cells.spread.empty() ? "" : " (" + cells.spread + ")";
    text += "| " + cells.name + " | " + cells.time + spread + " | " + cells.times + " | " + cells.peak + " | " +
            cells.pages + " |\n";
  }
  text += "\n";
  for (const std::string& each : verdict(all)) text += each + "\n";
  return text;
}

std::string comparison_html(const Comparison& all) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(all.program) +
      " on far memory</title>\n<style>body{font:15px sans-serif;margin:2em;max-width:60em}"
      "svg text{font-size:13px}.time{fill:#4477aa}.memory{fill:#ccbb44}"
      "td,th{padding:.2em .8em;text-align:right}td:first-child{text-align:left}</style></head><body>\n<h1>" +
      escaped(all.program) +
      " on far memory</h1>\n<p>Blue: time, median of its runs. Yellow: most resident memory, what is stored on this "
      "machine included.</p>\n" +
      html_bars(all) +
      "<table><tr><th></th><th>time</th><th>least to most</th><th>times native</th><th>resident</th><th>pages in</th>"
      "</tr>\n";
  for (const Series& one : all.series) {
    Cells cells = cells_of(all, one);
    page += "<tr>";
    for (const std::string* cell : {&cells.name, &cells.time, &cells.spread, &cells.times, &cells.peak, &cells.pages})
      page += "<td>" + escaped(*cell) + "</td>";
    page += "</tr>\n";
  }
  page += "</table>\n";
  for (const std::string& each : verdict(all)) page += "<p>" + escaped(each) + "</p>\n";
  return page + "</body></html>\n";
}

}  // namespace hinterland::cli
