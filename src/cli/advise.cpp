// hinterland advise: which hints would spare a traced program its faults, as text, JSON and a patch.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "advice/advice.hpp"
#include "advice/patch_plan.hpp"
#include "base/log.hpp"
#include "cli/advise_text.hpp"
#include "cli/budget_text.hpp"
#include "cli/command_line.hpp"
#include "cli/output_file.hpp"
#include "cli/replay_settings.hpp"

namespace hinterland::cli {
namespace {

using trace::AdviceReport;
using trace::TraceFile;

void say_what_is_missing(const TraceFile& file, const AdviceReport& report) {
  if (file.damaged_bytes != 0 || file.summary.complete == 0)
    log::warning("the trace is not complete: what it has is looked at");
  std::uint64_t faults = file.summary.faults, unknown = file.summary.lost_samples_stand_for;
  if (unknown > faults / 10)
    log::warning(
        "of %llu of the %llu faults nobody knows the place: the recorder was kept from the kernel's buffers for up "
        "to "
        "%llu ms, and they were full. Record again, on a machine that has less to do",
        static_cast<unsigned long long>(unknown), static_cast<unsigned long long>(faults),
        static_cast<unsigned long long>(file.summary.recorder_away_ns / 1'000'000));
  if (faults > report.looked_at)
    log::warning("of %llu faults the first %llu are looked at", static_cast<unsigned long long>(faults),
                 static_cast<unsigned long long>(report.looked_at));
  if (file.process.read_ahead_pages != 0)
    log::warning(
        "the trace was recorded with a read-ahead of %llu pages, which hides accesses: what is said of order and of "
        "gains is rough. Record with --read-ahead 0 --takeover start",
        static_cast<unsigned long long>(file.process.read_ahead_pages));
  for (const std::string& remark : report.remarks) log::warning("%s", remark.c_str());
}

// Where hinterland/hint.h is: below what was installed, or in the tree that this command was built from. "" where it
// is in neither.
std::string header_folder() {
  std::error_code problem;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", problem).parent_path();
  for (const char* place : {"../include", "../../include"}) {
    std::filesystem::path include = (folder / place).lexically_normal();
    if (std::filesystem::is_regular_file(include / "hinterland" / "hint.h", problem)) return include.string();
  }
  return "";
}

void say_how_to_compile() {
  std::string folder = header_folder();
  if (folder == "/usr/include")
    std::fputs("hinterland: then compile as before\n", stderr);
  else if (!folder.empty())
    std::fprintf(stderr, "hinterland: then compile as before, with one option more: -I%s\n", folder.c_str());
  else
    std::fputs("hinterland: then compile as before, with -I and the folder that has hinterland/hint.h\n", stderr);
}

// Shown on a terminal alone, and gone when the next thing is said.
void say_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

// Writes the patch, and says how to apply it.
Status write_patch(const CommandLine& line, AdviceReport& report, trace::Symbols& symbols,
                   trace::SourceTree& sources) {
  say_progress("trying the hints with a compiler");
  trace::PatchPlan plan = trace::plan_patch(report, symbols, sources, line.text(OptionId::source));
  say_progress("");
  for (const std::string& dropped : plan.dropped) log::warning("%s", dropped.c_str());
  if (plan.diff.empty()) {
    Error error = Error::make(0, "there is no hint to write into a patch");
    return std::unexpected(error.remedy("hinterland advise FILE without --patch says why, place by place"));
  }
  if (!plan.compiled) log::warning("the patch was NOT tried with a compiler: %s", plan.why_not_compiled.c_str());
  const std::string& path = line.text(OptionId::patch);
  if (Status written = write_file(path, plan.diff, line.number(OptionId::force) != 0); !written) return written;
  std::fprintf(stderr, "hinterland: %zu hints%s; apply them with: patch -p1 -d %s < %s\n", plan.hints,
               plan.compiled ? ", which compile" : "", plan.root.c_str(), path == "-" ? "PATCH" : path.c_str());
  say_how_to_compile();
  return {};
}

Result<double> tolerated_of(const CommandLine& line) {
  const std::string& text = line.text(OptionId::slow_down);
  double factor = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (problem == std::errc() && end == text.data() + text.size() && factor > 1 && factor <= 100) return factor;
  Error error = Error::make(0, "--slow-down: '%s' is no factor above 1, at most 100", text.c_str());
  return std::unexpected(error.remedy("give 1.1 where waiting may be a tenth of computing"));
}

Status check_options(const CommandLine& line) {
  if (Result<double> tolerated = tolerated_of(line); !tolerated) return std::unexpected(tolerated.error());
  bool budget = line.number(OptionId::budget) != 0;
  const char* other = line.is_given(OptionId::patch)  ? "--patch"
                      : line.is_flag(OptionId::local) ? "--local"
                                                      : nullptr;
  if (budget && other != nullptr) {
    Error error = Error::make(0, "--budget and %s contradict each other", other);
    return std::unexpected(error.remedy("leave one of them out"));
  }
  for (OptionId of_budget : {OptionId::slow_down, OptionId::native}) {
    if (budget || !line.is_given(of_budget)) continue;
    Error error = Error::make(0, "--%s is about --budget, which is not given", option(of_budget).name);
    return std::unexpected(error.remedy("leave it out, or add --budget"));
  }
  return {};
}

void say_budget(const CommandLine& line, const TraceFile& file, const AdviceReport& report) {
  BudgetAdvice advice;
  advice.tolerated = *tolerated_of(line);
  const double native_s =
      line.is_given(OptionId::native) ? static_cast<double>(line.number(OptionId::native)) / 1e9 : 0;
  auto plan = [&](const std::map<std::uint32_t, trace::ReplayHint>& hints) {
    return trace::plan_budget(file, report.sites, report.costs, report.settings, hints, advice.tolerated, native_s);
  };
  advice.as_it_is = plan({});
  advice.with_hints = plan(report.forms);
  bool json = line.number(OptionId::json) != 0;
  std::string text = json ? budget_json(file, advice).dump(2) + "\n" : budget_text(file, advice);
  std::fputs(text.c_str(), stdout);
}

int advise(const CommandLine& line) {
  Result<TraceFile> file = TraceFile::open(line.rest()[0]);
  if (!file) return fail(kEnvironment, file.error());
  trace::Symbols symbols(*file, line.text(OptionId::debug_files));
  trace::SourceTree sources(line.text(OptionId::source));
  trace::AdviceOptions options;
  options.top = line.number(OptionId::top);
  Result<trace::ReplayOptions> settings = replay_settings(line, *file, ReadAhead::as_usual);
  if (!settings) return fail(kUsage, settings.error());
  options.settings = *settings;
  options.progress = say_progress;
  AdviceReport report = trace::advise(*file, symbols, sources, options);
  say_progress("");
  say_what_is_missing(*file, report);
  if (line.number(OptionId::budget) != 0) {
    say_budget(line, *file, report);
    return kSuccess;
  }
  Status patched;
  if (line.is_given(OptionId::patch)) patched = write_patch(line, report, symbols, sources);
  if (!patched) return fail(kEnvironment, patched.error());
  if (line.number(OptionId::json) != 0)
    std::fputs((advice_json(*file, report).dump(2) + "\n").c_str(), stdout);
  else if (line.text(OptionId::patch) != "-")
    std::fputs(advice_text(*file, report, line.is_given(OptionId::patch)).c_str(), stdout);
  return kSuccess;
}

}  // namespace

int advise_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("advise"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"advise"});
  if (line->rest().empty()) {
    Error error = Error::make(0, "advise: no trace given");
    return fail(kUsage, error.remedy("hinterland advise FILE; 'hinterland trace' writes one"));
  }
  if (line->rest().size() > 1) return fail(kUsage, unexpected_argument("advise", line->rest()[1]));
  if (Status options = check_options(*line); !options) return fail(kUsage, options.error());
  return advise(*line);
}

}  // namespace hinterland::cli
