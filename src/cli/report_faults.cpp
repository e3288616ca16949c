// hinterland report: which places of a traced program fault.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>

#include "advice/hint_review.hpp"
#include "base/duration.hpp"
#include "base/log.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/compare_traces.hpp"
#include "cli/compiler_hints.hpp"
#include "cli/figures.hpp"
#include "cli/hint_report.hpp"
#include "cli/output_file.hpp"
#include "trace/exports.hpp"
#include "trace/html_page.hpp"
#include "trace/profile.hpp"

namespace hinterland::cli {
namespace {

using trace::Profile;
using trace::Site;
using trace::TraceFile;

constexpr double kCovered[] = {0.5, 0.8, 0.95, 0.99};

std::string source_text(trace::StackSource source) {
  switch (source) {
    case trace::StackSource::kernel_unwound:
      return "sampled by the kernel, unwound by the recorder";
    case trace::StackSource::kernel_frame_pointers:
      return "sampled and unwound by the kernel (frame pointers)";
    case trace::StackSource::instruction_only:
      return "only the innermost address (the kernel did not permit sampling)";
    case trace::StackSource::none:
      break;
  }
  return "none";
}

// In the message: what the file is short of.
void say_what_is_missing(const TraceFile& file, const Profile& profile, trace::GroupBy by) {
  if (file.damaged_bytes != 0)
    log::warning(
        "the trace ends in %llu bytes that are no complete record (the recorder was killed, or the disk full): "
        "what is before them is reported",
        static_cast<unsigned long long>(file.damaged_bytes));
  else if (file.summary.complete == 0)
    log::warning("the trace was not closed: the recorder was killed; what it had written is reported");
  if (file.summary.faults_lost != 0)
    log::warning("%llu faults are not in the trace: the recorder did not keep up",
                 static_cast<unsigned long long>(file.summary.faults_lost));
  if (by == trace::GroupBy::allocation && file.summary.allocations == 0)
    log::warning("no allocation is in the trace: it was recorded by an earlier version; trace the program again");
  for (const std::string& remark : profile.remarks) log::warning("%s", remark.c_str());
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

std::string lost_text(const trace::Summary& summary) {
  std::string text = std::to_string(summary.samples_lost) + " lost";
  if (summary.samples_lost != 0)
    text +=
        " (the recorder took none for up to " + duration_text(summary.recorder_away_ns / 1'000'000 * 1'000'000) + ")";
  return text;
}

std::string head_text(const TraceFile& file, const Profile& profile) {
  const trace::ProcessFacts& process = file.process;
  std::string text = process.program + " (process " + std::to_string(process.process_id) + "): local " +
                     rounded_size_text(process.local_bytes) + ", far " + process.far_url + ", policy " +
                     process.policy + ", read-ahead " + std::to_string(process.read_ahead_pages) + "\n";
  text += std::to_string(profile.faults_all) + " faults in " +
          duration_text(file.summary.ended_ns / 1'000'000 * 1'000'000) + ":";
  const char* separator = " ";
  for (std::size_t kind = 0; kind < trace::kFaultKinds; ++kind)
    if (profile.faults[kind] != 0) {
      text += separator + std::to_string(profile.faults[kind]) + " " + trace::kFaultKindNames[kind];
      separator = ", ";
    }
  text += "\n" + std::to_string(file.samples.size()) + " stacks (" + source_text(process.source) +
          "), which stand for " + std::to_string(static_cast<std::uint64_t>(profile.sampled_faults)) + " faults; " +
          percent(profile.whole_stacks) + " complete, " + lost_text(file.summary) + "\n";
  if (file.summary.sample_cost_ns != 0)
    text += "tracing took about " + percent(profile.tracing_cost) + " of the program's time (" +
            duration_text(file.summary.sample_cost_ns) + " a stack), and " +
            duration_text(file.summary.recorder_cpu_ns / 1'000'000 * 1'000'000) + " of another CPU\n";
  return text;
}

double sum_of(const std::vector<Site>& sites) {
  double sum = 0;
  for (const Site& site : sites) sum += site.all;
  return sum;
}

std::string coverage_text(const Profile& profile, const std::string& what) {
  std::string text = what + "s that cover";
  for (double share : kCovered)
    text += (share == kCovered[0] ? " " : ", ") + std::to_string(static_cast<int>(share * 100)) +
            " %: " + std::to_string(profile.sites_covering(share));
  return text + " (of " + std::to_string(profile.sites.size()) + ")\n";
}

// Of allocations: how much of the table is known, and how.
std::string attribution_text(const TraceFile& file, const Profile& profile) {
  std::string text = percent(profile.attributed) + " of the faults are on memory whose allocation is known: " +
                     percent(profile.attributed_exactly) + " for sure, the rest by a sample of small allocations\n";
  if (file.summary.allocations_lost != 0)
    text += std::to_string(file.summary.allocations_lost) +
            " allocations are not in the trace: too many of them live, or the recorder did not keep up\n";
  return text;
}

// The library function that faults most often for this site.
std::string via_text(const Site& site) {
  auto most = std::max_element(site.via.begin(), site.via.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == site.via.end() ? "" : "  (in " + trace::without_arguments(most->first) + ")";
}

std::string table_text(const Profile& profile, const trace::SitePlaces& places, std::uint64_t top) {
  double all = std::max(sum_of(profile.sites), 1.0), sum = 0;
  std::string text = "  share     sum   first    read   write  w-prot  latency  place\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(profile.sites.size(), top); ++i) {
    const Site& site = profile.sites[i];
    sum += site.all;
    auto share_of = [&](FaultKind kind) {
      return site.all > 0 ? site.faults[static_cast<std::size_t>(kind)] / site.all * 100 : 0;
    };
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "%5.1f %% %5.1f %% %5.0f %% %5.0f %% %5.0f %% %5.0f %%  %7s  ",
                  site.all / all * 100, sum / all * 100, share_of(FaultKind::first_touch), share_of(FaultKind::read),
                  share_of(FaultKind::write), share_of(FaultKind::write_protect),
                  site.latency_ns > 0
                      ? (std::to_string(static_cast<std::uint64_t>(site.latency_ns / 1000)) + "us").c_str()
                      : "");
    text += numbers + site.name() + via_text(site) + compiler_hints_text(places, site) + "\n";
  }
  return text;
}

Json site_json(const Site& site, const trace::SitePlaces& places, double all) {
  Json kinds;
  for (std::size_t kind = 0; kind < trace::kFaultKinds; ++kind)
    if (site.faults[kind] > 0) kinds[trace::kFaultKindNames[kind]] = site.faults[kind];
  Json via = Json::object();
  for (const auto& [name, faults] : site.via) via[name] = faults;
  return {
      {"function", site.function},
      {"file", site.file.empty() ? Json(nullptr) : Json(site.file)},
      {"line", site.line > 0 ? Json(site.line) : Json(nullptr)},
      {"module", site.module},
      {"share", all > 0 ? site.all / all : 0},
      {"faults", site.all},
      {"faults_by_kind", std::move(kinds)},
      {"samples", site.samples},
      {"latency_mean_ns", site.latency_ns > 0 ? Json(static_cast<std::uint64_t>(site.latency_ns)) : Json(nullptr)},
      {"in_library_functions", std::move(via)},
      {"compiler_hints", compiler_hints_json(places, site)}};
}

Json report_json(const TraceFile& file, const Profile& profile, const trace::SitePlaces& places,
                 const std::string& by, std::uint64_t top) {
  double all = sum_of(profile.sites);
  Json sites = Json::array(), covering, kinds, remarks = Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(profile.sites.size(), top); ++i)
    sites.push_back(site_json(profile.sites[i], places, all));
  for (double share : kCovered)
    covering[std::to_string(static_cast<int>(share * 100))] = profile.sites_covering(share);
  for (std::size_t kind = 0; kind < trace::kFaultKinds; ++kind)
    kinds[trace::kFaultKindNames[kind]] = profile.faults[kind];
  for (const std::string& remark : profile.remarks) remarks.push_back(remark);
  return {{"schema_version", kSchemaVersion},
          {"hinterland_version", HINTERLAND_VERSION},
          {"program", file.process.program},
          {"process_id", file.process.process_id},
          {"budget_bytes", file.process.local_bytes},
          {"far_url", file.process.far_url},
          {"policy", file.process.policy},
          {"read_ahead_pages", file.process.read_ahead_pages},
          {"traced_s", static_cast<double>(file.summary.ended_ns) / 1e9},
          {"faults", profile.faults_all},
          {"faults_by_kind", std::move(kinds)},
          {"faults_lost", file.summary.faults_lost},
          {"stacks", file.samples.size()},
          {"stacks_from", source_text(file.process.source)},
          {"stacks_lost", file.summary.samples_lost},
          {"stacks_lost_stand_for_faults", file.summary.lost_samples_stand_for},
          {"stacks_stand_for_faults", profile.sampled_faults},
          {"stacks_complete_share", profile.whole_stacks},
          {"stack_cost_ns", file.summary.sample_cost_ns},
          {"handler_cost_ns", file.summary.handler_cost_ns},
          {"faults_by_signal", file.summary.faults_by_signal != 0},
          {"tracing_cost_share", profile.tracing_cost},
          {"recorder_cpu_s", static_cast<double>(file.summary.recorder_cpu_ns) / 1e9},
          {"recorder_away_s", static_cast<double>(file.summary.recorder_away_ns) / 1e9},
          {"complete", file.summary.complete != 0 && file.damaged_bytes == 0},
          {"by", by},
          {"attributed_share", profile.attributed},
          {"attributed_exactly_share", profile.attributed_exactly},
          {"allocations_lost", file.summary.allocations_lost},
          {"places", profile.sites.size()},
          {"places_covering_percent", std::move(covering)},
          {"remarks", std::move(remarks)},
          {"sites", std::move(sites)}};
}

// Shares of places in one trace and in another, largest change first.
std::string diff_text(const Profile& before, const Profile& after, std::uint64_t top) {
  struct Change {
    std::string name;
    double before = 0, after = 0;
  };
  std::map<std::string, Change> changes;
  double scale_before = std::max(sum_of(before.sites), 1.0), scale_after = std::max(sum_of(after.sites), 1.0);
  for (const Site& site : before.sites)
    changes[site.name()].before += site.all / scale_before * static_cast<double>(before.faults_all);
  for (const Site& site : after.sites)
    changes[site.name()].after += site.all / scale_after * static_cast<double>(after.faults_all);
  std::vector<Change> all;
  for (auto& [name, change] : changes) all.push_back({name, change.before, change.after});
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  std::string text = "faults: " + std::to_string(before.faults_all) + " before, " + std::to_string(after.faults_all) +
                     " now\n      before         now      change  place\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), top); ++i) {
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "%12.0f %11.0f %+11.0f  ", all[i].before, all[i].after,
                  all[i].after - all[i].before);
    text += numbers + all[i].name + "\n";
  }
  return text;
}

// What speaks against the program's hints, as far as it shows without a replay.
std::vector<trace::HintRemark> remarks_on_hints(const TraceFile& file, trace::Symbols& symbols) {
  constexpr std::uint64_t kReviewedFaultsMax = 2'000'000;
  trace::SourceTree sources("");
  trace::FaultSites sites = trace::find_fault_sites(file, symbols, kReviewedFaultsMax);
  trace::Costs costs =
      trace::costs_of(file.samples, trace::fault_way(file.summary), trace::read_ahead_cost(file, nullptr));
  std::vector<trace::HintRemark> remarks;
  for (const trace::ReviewedHint& hint : trace::review_hints(file, symbols, sources, sites, costs, {}).hints)
    for (const trace::HintObjection& objection : hint.objections)
      remarks.push_back(
          {hint.name(), trace::kHintFaultNames[static_cast<std::size_t>(objection.fault)], objection.why});
  return remarks;
}

std::string html_page(const TraceFile& file, const Profile& profile, trace::Symbols& symbols) {
  return trace::html_page(file, profile, symbols, remarks_on_hints);
}

Status write_exports(const CommandLine& line, const TraceFile& file, const Profile& profile, trace::Symbols& symbols,
                     bool* to_stdout) {
  struct Export {
    OptionId option;
    std::string (*make)(const TraceFile&, const Profile&, trace::Symbols&);
  };
  constexpr Export kExports[] = {{OptionId::folded, trace::folded_text},
                                 {OptionId::speedscope, trace::speedscope_json},
                                 {OptionId::pprof, trace::pprof_bytes},
                                 {OptionId::html, html_page}};
  for (const Export& one : kExports) {
    if (!line.is_given(one.option)) continue;
    *to_stdout = *to_stdout || line.text(one.option) == "-";
    Status written =
        write_file(line.text(one.option), one.make(file, profile, symbols), line.number(OptionId::force) != 0);
    if (!written) return written;
  }
  return {};
}

// The hints that the compiler put there, where places are of code.
trace::SitePlaces places_of_hints(const CommandLine& line, const TraceFile& file, trace::GroupBy group) {
  const bool of_code = group == trace::GroupBy::line || group == trace::GroupBy::function;
  return of_code ? trace::SitePlaces(file, line.text(OptionId::debug_files)) : trace::SitePlaces();
}

Status write_hint_profile(const CommandLine& line, const TraceFile& file, trace::Symbols& symbols, bool* to_stdout) {
  if (!line.is_given(OptionId::hint_profile)) return {};
  const std::string& path = line.text(OptionId::hint_profile);
  Result<std::string> text = trace::site_profile_of(file, symbols, line.text(OptionId::debug_files));
  if (!text) return std::unexpected(text.error());
  *to_stdout = *to_stdout || path == "-";
  return write_file(path, *text, line.number(OptionId::force) != 0);
}

int report(const CommandLine& line) {
  Result<TraceFile> file = TraceFile::open(line.rest()[0]);
  if (!file) return fail(kEnvironment, file.error());
  trace::Symbols symbols(*file, line.text(OptionId::debug_files));
  auto group = static_cast<trace::GroupBy>(line.number(OptionId::by));
  Profile profile = trace::make_profile(*file, symbols, group);
  say_what_is_missing(*file, profile, group);
  bool to_stdout = false;
  if (Status written = write_exports(line, *file, profile, symbols, &to_stdout); !written)
    return fail(kEnvironment, written.error());
  if (Status written = write_hint_profile(line, *file, symbols, &to_stdout); !written)
    return fail(kEnvironment, written.error());
  const trace::SitePlaces places = places_of_hints(line, *file, group);
  std::uint64_t top = line.number(OptionId::top);
  std::string text;
  if (line.is_given(OptionId::diff)) {
    Result<TraceFile> before = TraceFile::open(line.text(OptionId::diff));
    if (!before) return fail(kEnvironment, before.error());
    trace::Symbols names(*before, line.text(OptionId::debug_files));
    text = diff_text(trace::make_profile(*before, names, group), profile, top);
  } else if (line.number(OptionId::json) != 0) {
    Json report = report_json(*file, profile, places, line.text(OptionId::by), top);
    report["hints"] = hints_json(trace::make_hint_profile(*file, symbols), top);
    text = report.dump(2) + "\n";
  } else if (!to_stdout) {
    text = head_text(*file, profile) + coverage_text(profile, line.text(OptionId::by)) +
           (group == trace::GroupBy::allocation ? attribution_text(*file, profile) : "") +
           table_text(profile, places, top) + hints_text(trace::make_hint_profile(*file, symbols), top);
  }
  std::fputs(text.c_str(), stdout);
  return kSuccess;
}

// Several traces: side by side.
int compare(const CommandLine& line) {
  for (OptionId alone : {OptionId::diff, OptionId::html, OptionId::folded, OptionId::speedscope, OptionId::pprof,
                         OptionId::hint_profile})
    if (line.is_given(alone)) {
      Error error =
          Error::make(0, "report: --%s is for one trace, and %zu are named", option(alone).name, line.rest().size());
      return fail(kUsage, error.remedy("name one, or leave --%s out", option(alone).name));
    }
  auto group = static_cast<trace::GroupBy>(line.number(OptionId::by));
  std::vector<ComparedTrace> traces;
  for (const std::string& path : line.rest()) {
    Result<TraceFile> file = TraceFile::open(path);
    if (!file) return fail(kEnvironment, file.error());
    trace::Symbols symbols(*file, line.text(OptionId::debug_files));
    Profile profile = trace::make_profile(*file, symbols, group);
    say_what_is_missing(*file, profile, group);
    traces.push_back({path, file->process.local_bytes, std::move(profile)});
  }
  const std::string& what = line.text(OptionId::by);
  std::uint64_t top = line.number(OptionId::top);
  bool json = line.number(OptionId::json) != 0;
  std::string text = json ? comparison_json(traces, what, top).dump(2) + "\n" : comparison_text(traces, what, top);
  std::fputs(text.c_str(), stdout);
  return kSuccess;
}

}  // namespace

int report_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("report"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"report"});
  if (line->rest().empty()) {
    Error error = Error::make(0, "report: no trace given");
    return fail(kUsage, error.remedy("hinterland report FILE; 'hinterland trace' writes one"));
  }
  return line->rest().size() > 1 ? compare(*line) : report(*line);
}

}  // namespace hinterland::cli
