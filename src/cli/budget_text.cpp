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

// Of a native time that is an estimate no slow-down is said, which would be off by as much.
std::string answer_text(const BudgetPlan& plan, double tolerated) {
  if (plan.least_bytes == 0) return "No amount of local memory that was tried is enough.\n";
  char line[240];
  auto mib = static_cast<unsigned long long>(given_bytes(plan.least_bytes) / kMiB);
  const char* less = plan.less_may_do ? " Less may do: record with less to know." : "";
  if (plan.is_measured)
    std::snprintf(line, sizeof line, "--local %lluM is enough for %.2f times the native time.%s\n", mib, tolerated,
                  less);
  else
    std::snprintf(line, sizeof line, "With --local %lluM it waits for at most %.0f %% of what it computes.%s\n", mib,
                  (tolerated - 1) * 100, less);
  return line;
}

std::string plan_text(const BudgetPlan& plan, const char* what, double tolerated) {
  char line[200];
  std::snprintf(line, sizeof line, "%s:\n       local      faults       hints    pages in     waiting  %s\n", what,
                plan.is_measured ? "slow-down" : "waiting / computing");
  std::string text = line;
  for (const BudgetPoint& point : plan.points) {
    std::snprintf(line, sizeof line, "%s %10s  %10llu  %10llu  %10llu  %8.2f s  ",
                  point.local_bytes == plan.least_bytes ? "*" : " ", rounded_size_text(point.local_bytes).c_str(),
                  static_cast<unsigned long long>(point.faults), static_cast<unsigned long long>(point.hinted),
                  static_cast<unsigned long long>(point.pages_in), point.waiting_s);
    text += line;
    if (plan.is_measured)
      std::snprintf(line, sizeof line, "%9.2f\n", 1 + point.waiting_share);
    else
      std::snprintf(line, sizeof line, "%17.0f %%\n", point.waiting_share * 100);
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
                      {"waiting_share", point.waiting_share},
                      {"slow_down", plan.is_measured ? Json(1 + point.waiting_share) : Json(nullptr)}});
  return {{"budget_bytes", plan.least_bytes > 0 ? Json(given_bytes(plan.least_bytes)) : Json(nullptr)},
          {"less_may_do", plan.less_may_do},
          {"points", std::move(points)}};
}

}  // namespace

std::string budget_text(const trace::TraceFile& file, const BudgetAdvice& advice) {
  char line[400];
  const BudgetPlan& plan = advice.as_it_is;
  if (plan.is_measured)
    std::snprintf(line, sizeof line, "%s: natively %.2f s; %.1f threads share the waiting\n\n",
                  file.process.program.c_str(), plan.local_s, plan.waiting_threads);
  else
    std::snprintf(line, sizeof line,
                  "%s: computes for about %.2f s in the traced run, which may be longer than natively; %.1f threads "
                  "share the waiting.\nFor slow-downs give the time of a native run: --native TIME\n\n",
                  file.process.program.c_str(), plan.local_s, plan.waiting_threads);
  return line + plan_text(advice.as_it_is, "As it is", advice.tolerated) + "\n" +
         plan_text(advice.with_hints, "With the hints advised", advice.tolerated);
}

Json budget_json(const trace::TraceFile& file, const BudgetAdvice& advice) {
  return {{"schema_version", kSchemaVersion},
          {"program", file.process.program},
          {"tolerated_slow_down", advice.tolerated},
          {"all_local_s", advice.as_it_is.local_s},
          {"all_local_is_measured", advice.as_it_is.is_measured},
          {"waiting_factor", advice.as_it_is.waiting_factor},
          {"waiting_threads", advice.as_it_is.waiting_threads},
          {"as_it_is", plan_json(advice.as_it_is)},
          {"with_hints", plan_json(advice.with_hints)}};
}

}  // namespace hinterland::cli
