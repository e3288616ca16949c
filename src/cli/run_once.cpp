#include "cli/run_once.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/available_memory.hpp"
#include "base/log.hpp"
#include "base/parts.hpp"
#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/absolute_path.hpp"
#include "cli/preload_library.hpp"
#include "cli/running.hpp"
#include "cli/share/sharing.hpp"
#include "cli/supervise.hpp"
#include "cli/tracing.hpp"
#include "far/url.hpp"
#include "kernel/probe.hpp"
#include "policy/plugin.hpp"

namespace hinterland::cli {

int status_of(const Error& error) {
  if (error.code() == ENOENT) return kNotFound;
  if (error.code() == EACCES || error.code() == ENOEXEC || error.code() == ELOOP) return kNotExecutable;
  return kEnvironment;
}

void fit_into_group(CommandLine& line) {
  AvailableMemory memory = available_memory();
  const OptionId which = line.is_given(OptionId::local_total) ? OptionId::local_total : OptionId::local;
  std::uint64_t wanted = line.number(which);
  if (memory.cgroup_limit_bytes == 0 || wanted < memory.cgroup_limit_bytes) return;
  // The same share as without --local: the rest is for what the budget does not cover.
  std::uint64_t granted = std::max(page_floor(memory.cgroup_room_bytes / 4 * 3), option(which).minimum);
  log::warning(
      "%s %s is more than this memory group may have (%s): using %s, so that the kernel does not kill the program",
      line[which].named.c_str(), rounded_size_text(wanted).c_str(),
      rounded_size_text(memory.cgroup_limit_bytes).c_str(), rounded_size_text(granted).c_str());
  line.settle_for(which, granted);
}

void settle_shares(CommandLine& line) {
  if (line.is_given(OptionId::local_total))
    line.settle_for(OptionId::local, first_share(line.number(OptionId::local_total)));
}

namespace {

// What the programs read: they may be in another folder by then, and what is a share of the available memory now
// would later be one of what is left.
std::string text_for_program(const Option& row, const Value& value) {
  if (row.type == OptionType::size_or_percent) return std::to_string(value.number);
  if (row.type == OptionType::path) return absolute_path(value.text);
  if (row.type == OptionType::choice_or_file) return policy_with_whole_path(value.text);
  if (&row == &option(OptionId::far)) return far::url_from(current_folder(), value.text);
  return value.text;
}

// Whether the kernel's MOVE takes pages, which refuses those that it has pinned.
bool sees_pins(const CommandLine& line) {
  constexpr std::uint64_t kWithoutMove = 1U << 1;  // in the order of the choices
  if (line.text(OptionId::take) == "protect" || (line.number(OptionId::without) & kWithoutMove) != 0) return false;
  Result<ProbedDescriptor> probed = open_fault_descriptor();
  if (!probed) return true;  // said elsewhere
  close(probed->descriptor);
  return probed->features.move;
}

}  // namespace

Result<std::string> libraries_for(const CommandLine& line) {
  Result<std::string> library = find_preload_library();
  if (!library || (line.text(OptionId::fault) != "signal" && sees_pins(line))) return library;
  Result<std::string> more = find_signal_library();
  if (!more) return more;
  return *library + ":" + *more;
}

void export_settings(const CommandLine& line, const std::string& library) {
  for (std::size_t i = 0; i < all_options().size(); ++i) {
    const Option& row = all_options()[i];
    if ((row.commands & kForRun) == 0) continue;
    const Value& value = line[static_cast<OptionId>(i)];
    if (row.for_program && value.source != Source::none)
      setenv(variable_name(row).c_str(), text_for_program(row, value).c_str(), 1);
    else if (row.elsewhere != Elsewhere::nowhere)
      unsetenv(variable_name(row).c_str());  // an inner `run` must not write over our report
  }
  // Who writes core files is this very program, found again at the crash without PATH or current directory.
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length > 0 && line.is_given(OptionId::core))
    setenv("HINTERLAND_CORE_WRITER", std::string(self, static_cast<std::size_t>(length)).c_str(), 1);
  setenv("LD_PRELOAD", preload_list(library, std::getenv("LD_PRELOAD")).c_str(), 1);
}

namespace {

bool has_faulted(const std::string& directory) {
  std::uint64_t faults = 0;
  for (const StatView& page : pages_in(directory))
    for (Counter kind :
         {Counter::faults_first_touch, Counter::faults_read, Counter::faults_write, Counter::faults_refault})
      faults += page->counters[kind];
  return faults != 0;
}

bool covers_all_addresses(const CommandLine& line) {
  return line.number(OptionId::addresses) != static_cast<std::uint64_t>(Addresses::window) &&
         line.number(OptionId::fault) == 0;
}

void write_figures(const CommandLine& line, const std::string& directory, const Outcome& outcome,
                   ReportFile& report) {
  const OptionId budget = line.is_given(OptionId::local_total) ? OptionId::local_total : OptionId::local;
  RunFacts facts{line.rest()[0], line.number(budget), line.text(OptionId::far), line.text(OptionId::policy),
                 covers_all_addresses(line)};
  std::vector<StatView> pages = pages_in(directory);
  if (report.is_wanted())
    if (Status written = report.write(report_json(facts, outcome, pages)); !written)
      fail(kEnvironment, written.error());
  if (line.number(OptionId::verbose) != 0)
    std::fprintf(stderr, "hinterland: %s", summary_text(facts, outcome, pages).c_str());
}

}  // namespace

std::expected<Outcome, RunFailure> run_once(const CommandLine& line, const std::string& path, ReportFile& report,
                                            const std::string& trace_output) {
  Result<std::string> figures = make_run_directory(chosen_directory(line.text(OptionId::stat_dir)));
  if (!figures) return std::unexpected(RunFailure{kEnvironment, figures.error()});
  setenv("HINTERLAND_STAT_DIR", figures->c_str(), 1);
  setenv("HINTERLAND_STAT_KEEP", "1", 1);
  std::optional<Tracing> tracing;
  if (!trace_output.empty()) {
    Result<Tracing> begun = Tracing::begin(line, *figures, trace_output);
    if (!begun) {
      remove_run_directory(*figures);
      return std::unexpected(RunFailure{kEnvironment, begun.error()});
    }
    tracing.emplace(std::move(*begun));
  }
  std::optional<Sharing> sharing;
  Result<Outcome> outcome = supervise(path, line.rest(), [&](pid_t child) {
    // Not before the fork: the child would be one of several threads' process.
    if (line.is_given(OptionId::local_total)) sharing.emplace(*figures, line.number(OptionId::local_total));
    return tracing ? tracing->start(child) : Status();
  });
  sharing.reset();
  if (tracing) tracing->finish(Tracing::Of::started, has_faulted(*figures));
  if (outcome) write_figures(line, *figures, *outcome, report);
  remove_run_directory(*figures);
  if (!outcome) return std::unexpected(RunFailure{status_of(outcome.error()), outcome.error()});
  return *outcome;
}

}  // namespace hinterland::cli
