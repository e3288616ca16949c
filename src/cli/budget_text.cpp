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

std::string answer_text(const BudgetPlan& plan, double tolerated) {
  if (plan.least_bytes == 0) return "No amount of local memory that was tried is enough.\n";
  char line[240];
  std::snprintf(line, sizeof line, "With --local %lluM it waits for at most %.0f %% of what it computes.%s\n",
                static_cast<unsigned long long>(given_bytes(plan.least_bytes) / kMiB), (tolerated - 1) * 100,
                plan.less_may_do ? " Less may do: record with less to know." : "");
  return line;
}

// Waiting, and no slow-down: how long the program takes natively the trace does not tell. Foretold from a given
// native time, slow-downs of ten programs were off by a third and more.
std::string plan_text(const BudgetPlan& plan, const char* what, double tolerated) {
  char line[200];
  std::snprintf(line, sizeof line,
                "%s:\n       local      faults       hints    pages in     waiting  waiting / computing\n", what);
  std::string text = line;
  for (const BudgetPoint& point : plan.points) {
    std::snprintf(line, sizeof line, "%s %10s  %10llu  %10llu  %10llu  %8.2f s  %17.0f %%\n",
                  point.local_bytes == plan.least_bytes ? "*" : " ", rounded_size_text(point.local_bytes).c_str(),
                  static_cast<unsigned long long>(point.faults), static_cast<unsigned long long>(point.hinted),
                  static_cast<unsigned long long>(point.pages_in), point.waiting_s, point.waiting_share * 100);
    text += line;
  }
  return text + answer_text(plan, tolerated);
}

Json plan_json(const BudgetPlan& plan) {
  Json points = Json::array();
  for (const BudgetPoint& point : plan.points)
    points.push_back({{"budget_bytes", point.local_bytes},
                      {"faults", point.faults},
                      {"hinted", point.hinted},
                      {"pages_in", point.pages_in},
                      {"waiting_s", point.waiting_s},
                      {"waiting_share", point.waiting_share}});
  return {{"budget_bytes", plan.least_bytes > 0 ? Json(given_bytes(plan.least_bytes)) : Json(nullptr)},
          {"less_may_do", plan.less_may_do},
          {"points", std::move(points)}};
}

}  // namespace

std::string budget_text(const trace::TraceFile& file, const BudgetAdvice& advice) {
  char line[400];
  std::snprintf(
      line, sizeof line,
      "%s: computes for about %.2f s in the traced run, which may be longer than natively; %.1f threads share the "
      "waiting\n\n",
      file.process.program.c_str(), advice.as_it_is.local_s, advice.as_it_is.waiting_threads);
  return line + plan_text(advice.as_it_is, "As it is", advice.tolerated) + "\n" +
         plan_text(advice.with_hints, "With the hints advised", advice.tolerated);
}

Json budget_json(const trace::TraceFile& file, const BudgetAdvice& advice) {
  return {{"schema_version", kSchemaVersion},
          {"program", file.process.program},
          {"tolerated_waiting_share", advice.tolerated - 1},
          {"computing_s", advice.as_it_is.local_s},
          {"waiting_threads", advice.as_it_is.waiting_threads},
          {"as_it_is", plan_json(advice.as_it_is)},
          {"with_hints", plan_json(advice.with_hints)}};
}

}  // namespace hinterland::cli
