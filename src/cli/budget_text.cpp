#include "cli/budget_text.hpp"

#include <cstdio>

#include "base/size.hpp"

namespace hinterland::cli {
namespace {

using trace::BudgetPlan;
using trace::BudgetPoint;

constexpr std::uint64_t kMiB = 1 << 20;

// In whole MiB, upwards: what can be given to --local.
std::uint64_t given_bytes(std::uint64_t bytes) { return (bytes + kMiB - 1) / kMiB * kMiB; }

std::string plan_text(const BudgetPlan& plan, const char* what, double tolerated) {
  char line[200];
  std::snprintf(line, sizeof line, "%s:\n       local      faults       hints    pages in    waiting  slow-down\n",
                what);
  std::string text = line;
  for (const BudgetPoint& point : plan.points) {
    std::snprintf(line, sizeof line, "%s %10s  %10llu  %10llu  %10llu  %8.2f s  %9.2f\n",
                  point.local_bytes == plan.least_bytes ? "*" : " ", rounded_size_text(point.local_bytes).c_str(),
                  static_cast<unsigned long long>(point.faults), static_cast<unsigned long long>(point.hinted),
                  static_cast<unsigned long long>(point.pages_in), point.waiting_s, point.slow_down);
    text += line;
  }
  if (plan.least_bytes == 0) {
    text += "No amount of local memory that was tried is enough.\n";
  } else {
    std::snprintf(line, sizeof line, "--local %lluM is enough for %.2f times the time of all memory local.%s\n",
                  static_cast<unsigned long long>(given_bytes(plan.least_bytes) / kMiB), tolerated,
                  plan.less_may_do ? " Less may do: record with less to know." : "");
    text += line;
  }
  return text;
}

Json plan_json(const BudgetPlan& plan) {
  Json points = Json::array();
  for (const BudgetPoint& point : plan.points)
    points.push_back({{"budget_bytes", point.local_bytes},
                      {"faults", point.faults},
                      {"hinted", point.hinted},
                      {"pages_in", point.pages_in},
                      {"waiting_s", point.waiting_s},
                      {"slow_down", point.slow_down}});
  return {{"budget_bytes", plan.least_bytes > 0 ? Json(given_bytes(plan.least_bytes)) : Json(nullptr)},
          {"less_may_do", plan.less_may_do},
          {"points", std::move(points)}};
}

}  // namespace

std::string budget_text(const trace::TraceFile& file, const BudgetAdvice& advice) {
  char line[200];
  std::snprintf(line, sizeof line,
                "%s: with all memory local the traced time would be about %.2f s; %.1f threads share the waiting\n\n",
                file.process.program.c_str(), advice.as_it_is.local_s, advice.as_it_is.waiting_threads);
  return line + plan_text(advice.as_it_is, "As it is", advice.tolerated) + "\n" +
         plan_text(advice.with_hints, "With the hints advised", advice.tolerated);
}

Json budget_json(const trace::TraceFile& file, const BudgetAdvice& advice) {
  return {{"schema_version", kSchemaVersion},
          {"program", file.process.program},
          {"tolerated_slow_down", advice.tolerated},
          {"all_local_s", advice.as_it_is.local_s},
          {"waiting_threads", advice.as_it_is.waiting_threads},
          {"as_it_is", plan_json(advice.as_it_is)},
          {"with_hints", plan_json(advice.with_hints)}};
}

}  // namespace hinterland::cli
