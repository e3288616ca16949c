// hinterland replay: what a trace's faults would have been with another budget, policy or read-ahead.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "base/log.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/figures.hpp"
#include "cli/replay_settings.hpp"
#include "policy/policies.hpp"
#include "trace/belady.hpp"
#include "trace/latencies.hpp"
#include "trace/replay.hpp"

namespace hinterland::cli {
namespace {

using trace::FaultCosts;
using trace::ReplayOptions;
using trace::ReplayResult;
using trace::TraceFile;

struct Row {
  ReplayOptions options;
  ReplayResult result;
  std::uint64_t pages_in_least = 0;  // whatever the policy
  std::optional<double> stall_s;     // of all threads together
};

// The fewest pages that can be fetched, by budget.
class Bound {
 public:
  explicit Bound(const TraceFile& file) { belady_.add_all(file); }
  std::uint64_t pages_in(std::uint64_t local_bytes) {
    auto [known, fresh] = known_.try_emplace(local_bytes);
    if (fresh) known->second = belady_.pages_in(std::max<std::uint64_t>(local_bytes >> kPageShift, 1));
    return known->second;
  }
  // What is fetched with twice as much as that is fetched with any budget: it was far before it was first seen.
  bool fits_twice(std::uint64_t local_bytes) const { return local_bytes / 2 >= belady_.pages() << kPageShift; }

 private:
  trace::Belady belady_;
  std::map<std::uint64_t, std::uint64_t> known_;
};

Row replay(const TraceFile& file, const ReplayOptions& options, const FaultCosts& costs, Bound& bound) {
  trace::Replay machine(options);
  file.for_each_fault([&](const trace::FaultRecord& fault) { machine.fault(fault); });
  Row row{options, machine.result(), bound.pages_in(options.local_bytes), {}};
  if (costs.known) row.stall_s = trace::waiting_ns(row.result, costs) / 1e9;
  return row;
}

Json row_json(const Row& row) {
  const ReplayResult& result = row.result;
  return {{"budget_bytes", row.options.local_bytes},
          {"policy", row.options.policy->name},
          {"read_ahead_pages", row.options.read_ahead_pages},
          {"accesses", result.accesses},
          {"hits", result.hits},
          {"faults", result.faults()},
          {"faults_first_touch", result.first_touch},
          {"faults_fetch", result.fetches},
          {"faults_refault", result.refaults},
          {"miss_ratio",
           result.accesses > 0 ? static_cast<double>(result.faults()) / static_cast<double>(result.accesses) : 0},
          {"pages_in", result.pages_in},
          {"pages_in_least", row.pages_in_least},
          {"pages_out", result.pages_out},
          {"stall_s", row.stall_s ? Json(*row.stall_s) : Json(nullptr)}};
}

std::string table_text(const std::vector<Row>& rows) {
  std::string text =
      "     local  policy         read-ahead      faults  of those fetches  pages in  at least  pages out   stall\n";
  for (const Row& row : rows) {
    char line[160];
    std::snprintf(
        line, sizeof line, "%10s  %-13s  %10u  %10llu  %16llu  %8llu  %8llu  %9llu  ",
        rounded_size_text(row.options.local_bytes).c_str(), row.options.policy->name, row.options.read_ahead_pages,
        static_cast<unsigned long long>(row.result.faults()), static_cast<unsigned long long>(row.result.fetches),
        static_cast<unsigned long long>(row.result.pages_in), static_cast<unsigned long long>(row.pages_in_least),
        static_cast<unsigned long long>(row.result.pages_out));
    text += line;
    std::snprintf(line, sizeof line, "%.2f s", row.stall_s.value_or(0));
    text += (row.stall_s ? line : "") + std::string("\n");
  }
  return text;
}

// Every policy, the plug-in that is given among them, with the trace's budget doubled until nothing more is saved.
std::vector<Row> sweep(const TraceFile& file, const ReplayOptions& first, const FaultCosts& costs, Bound& bound) {
  std::vector<Row> rows;
  std::vector<const hl_policy_ops*> all(policies().begin(), policies().end());
  if (find_policy(first.policy->name) != first.policy) all.insert(all.begin(), first.policy);
  for (const hl_policy_ops* policy : all) {
    ReplayOptions options = first;
    options.policy = policy;
    for (int doublings = 0; doublings < 12; ++doublings, options.local_bytes *= 2) {
      rows.push_back(replay(file, options, costs, bound));
      if (rows.back().result.fetches == 0 || bound.fits_twice(options.local_bytes)) break;
    }
  }
  return rows;
}

void say_what_it_cannot_know(const TraceFile& file, const ReplayOptions& options) {
  if (options.local_bytes < file.process.local_bytes)
    log::warning("the trace was recorded with %s local: it has no access that hit there, so less is not predicted",
                 rounded_size_text(file.process.local_bytes).c_str());
  if (options.read_ahead_pages < file.process.read_ahead_pages)
    log::warning(
        "the trace was recorded with a read-ahead of %llu: pages that came ahead and were used are not in it. "
        "Record with --read-ahead 0 to compare",
        static_cast<unsigned long long>(file.process.read_ahead_pages));
  if (file.summary.faults_lost != 0 || file.damaged_bytes != 0)
    log::warning("the trace is not complete, and so is what is predicted");
}

int replay(const CommandLine& line) {
  Result<TraceFile> file = TraceFile::open(line.rest()[0]);
  if (!file) return fail(kEnvironment, file.error());
  Result<ReplayOptions> options = replay_settings(line, *file, ReadAhead::as_recorded);
  if (!options) return fail(kUsage, options.error());
  say_what_it_cannot_know(*file, *options);
  FaultCosts costs = trace::fault_costs(file->samples, trace::fault_way(file->summary),
                                        trace::read_ahead_cost(*file, options->outlook.get()));
  Bound bound(*file);
  std::vector<Row> rows = line.number(OptionId::sweep) != 0 ? sweep(*file, *options, costs, bound)
                                                            : std::vector<Row>{replay(*file, *options, costs, bound)};
  std::string text;
  if (line.number(OptionId::json) != 0) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(row_json(row));
    text = Json({{"schema_version", kSchemaVersion}, {"program", file->process.program}, {"runs", std::move(list)}})
               .dump(2) +
           "\n";
  } else {
    text = table_text(rows);
  }
  std::fputs(text.c_str(), stdout);
  return kSuccess;
}

}  // namespace

int replay_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("replay"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"replay"});
  if (line->rest().empty()) {
    Error error = Error::make(0, "replay: no trace given");
    return fail(kUsage, error.remedy("hinterland replay FILE --local 256M; 'hinterland trace' writes one"));
  }
  if (line->rest().size() > 1) return fail(kUsage, unexpected_argument("replay", line->rest()[1]));
  return replay(*line);
}

}  // namespace hinterland::cli
