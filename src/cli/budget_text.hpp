// What `hinterland advise --budget` prints, for people and as JSON.
#pragma once

#include <string>

#include "advice/budget_plan.hpp"
#include "cli/figures.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::cli {

struct BudgetAdvice {
  double tolerated = 0;
  trace::BudgetPlan as_it_is, with_hints;
};

std::string budget_text(const trace::TraceFile& file, const BudgetAdvice& advice);
Json budget_json(const trace::TraceFile& file, const BudgetAdvice& advice);

}  // namespace hinterland::cli
