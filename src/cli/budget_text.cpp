#include "cli/budget_text.hpp"

#include <cstdio>

#include "base/size.hpp"
#include "cli/formatted.hpp"

namespace hinterland::cli {
namespace {

using trace::BudgetPlan;
using trace::BudgetPoint;

constexpr std::uint64_t kMiB = 1 << 20;

// In whole MiB, upwards: what can be given to --local.
std::uint64_t given_bytes(std::uint64_t bytes) { return (bytes + kMiB - 1) / kMiB * kMiB; }

std::string answer_text(const BudgetPlan& plan, double tolerated) {
  if (plan.native_s == 0) return "";
  if (plan.least_bytes == 0) return "No amount of local memory that was tried is enough.\n";
  char line[240];
  std::snprintf(line, sizeof line, "With --local %lluM it waits for at most %.0f %% of its native time.%s\n",
                static_cast<unsigned long long>(given_bytes(plan.least_bytes) / kMiB), (tolerated - 1) * 100,
                plan.less_may_do ? " Less may do: record with less to know." : "");
  return line;
}

std::string plan_text(const BudgetPlan& plan, const char* what, double tolerated) {
  char line[200];
  std::snprintf(line, sizeof line,
                "%s:\n       local      faults       hints    pages in     waiting  waiting / native\n", what);
  std::string text = line;
  for (const BudgetPoint& point : plan.points) {
    char share[24] = "-";
    if (plan.native_s > 0) std::snprintf(share, sizeof share, "%.0f %%", point.waiting_share * 100);
    std::snprintf(line, sizeof line, "%s %10s  %10llu  %10llu  %10llu  %8.2f s  %16s\n",
                  point.local_bytes == plan.least_bytes ? "*" : " ", rounded_size_text(point.local_bytes).c_str(),
                  static_cast<unsigned long long>(point.faults), static_cast<unsigned long long>(point.hinted),
                  static_cast<unsigned long long>(point.pages_in), point.waiting_s, share);
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
                      {"waiting_share", plan.native_s > 0 ? Json(point.waiting_share) : Json(nullptr)}});
  return {{"budget_bytes", plan.least_bytes > 0 ? Json(given_bytes(plan.least_bytes)) : Json(nullptr)},
          {"less_may_do", plan.less_may_do},
          {"points", std::move(points)}};
}

}  // namespace

std::string budget_text(const trace::TraceFile& file, const BudgetAdvice& advice) {
  const BudgetPlan& plan = advice.as_it_is;
  std::string head = file.process.program + ": ";
  if (plan.native_s > 0)
    head += formatted("%.2f s natively; ", plan.native_s);
  else
    head +=
        "which of these is enough depends on its native time, which this trace can't tell, because the program "
        "waited for most of its time: give it with --native TIME; ";
  head += formatted("%.1f threads share the waiting\n\n", plan.waiting_threads);
  return head + plan_text(advice.as_it_is, "As it is", advice.tolerated) + "\n" +
         plan_text(advice.with_hints, "With the hints advised", advice.tolerated);
}

Json budget_json(const trace::TraceFile& file, const BudgetAdvice& advice) {
  const double native_s = advice.as_it_is.native_s;
  return {{"schema_version", kSchemaVersion},
          {"program", file.process.program},
          {"tolerated_waiting_share", advice.tolerated - 1},
          {"native_s", native_s > 0 ? Json(native_s) : Json(nullptr)},
          {"waiting_threads", advice.as_it_is.waiting_threads},
          {"as_it_is", plan_json(advice.as_it_is)},
          {"with_hints", plan_json(advice.with_hints)}};
}

}  // namespace hinterland::cli
