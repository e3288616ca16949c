// hinterland stat: live figures of running programs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/figures.hpp"
#include "cli/memory_kinds.hpp"
#include "cli/openmetrics.hpp"
#include "cli/pid.hpp"
#include "cli/program_table.hpp"
#include "cli/running.hpp"
#include "cli/terminal.hpp"

namespace hinterland::cli {
namespace {

std::string gauge_text(const StatName& name, std::uint64_t value) {
  bool bytes = std::string_view(name.name).ends_with("_bytes");
  return bytes ? rounded_size_text(value) : std::to_string(value);
}

void print_latency(const char* name, const LatencyHistogram& histogram) {
  std::printf(
      "  %-26s %llu; median %s, 90 %% %s, 99 %% %s, 99.9 %% %s, longest %s\n", name,
      static_cast<unsigned long long>(histogram.count()), duration_text(histogram.percentile_ns(0.5)).c_str(),
      duration_text(histogram.percentile_ns(0.9)).c_str(), duration_text(histogram.percentile_ns(0.99)).c_str(),
      duration_text(histogram.percentile_ns(0.999)).c_str(), duration_text(histogram.percentile_ns(1)).c_str());
}

void print_details(const StatView& view, LastLooks& looks) {
  Figures figures;
  figures.add(*view);
  std::uint64_t at_ns = now_ns();
  const LastLook* last = last_of(looks, view->pid);
  keep_new(figures, last);
  std::printf("%s\n", coloured(kBold, text_of(view->program) + " (" + std::to_string(view->pid) + "), for " +
                                          duration_text(at_ns - view->started_ns) + ", " + text_of(view->far_url) +
                                          ", " + text_of(view->policy))
                          .c_str());
  for (std::size_t i = 0; i < figures.gauges.size(); ++i)
    std::printf("  %-26s %-14s %s\n", kGaugeNames[i].name, gauge_text(kGaugeNames[i], figures.gauges[i]).c_str(),
                kGaugeNames[i].help);
  for (std::size_t i = 0; i < figures.counters.size(); ++i) {
    std::string text = std::to_string(figures.counters[i]);
    if (last != nullptr) {
      char per_second[48];
      std::snprintf(per_second, sizeof per_second, " (%.0f/s)", rate(*last, figures, static_cast<Counter>(i), at_ns));
      text += per_second;
    }
    std::printf("  %-26s %-14s %s\n", kCounterNames[i].name, text.c_str(), kCounterNames[i].help);
  }
  print_latency("fault latency", figures.fault_latency);
  print_latency("fetch latency", figures.fetch_latency);
  for (const auto& [name, value] : policy_figures(*view))
    std::printf("  %-26s %-14llu %s's own\n", name.c_str(), static_cast<unsigned long long>(value),
                text_of(view->policy).c_str());
  if (view->policy_report.text[0] != '\0')
    std::printf("  %s: %s\n", text_of(view->policy).c_str(), text_of(view->policy_report.text).c_str());
  note(looks, *view, at_ns);
}

void print_json(const std::vector<StatView>& views, bool one_line) {
  Json programs = Json::array();
  for (const StatView& view : views) programs.push_back(program_json(*view));
  Json json{{"schema_version", kSchemaVersion}, {"hinterland_version", HINTERLAND_VERSION}, {"programs", programs}};
  std::printf("%s\n", json.dump(one_line ? -1 : 2).c_str());
}

// The pages of this program, 0 for all.
Result<std::vector<StatView>> pages_of(const CommandLine& line, pid_t pid) {
  std::vector<std::string> directories = searched_directories(line.text(OptionId::stat_dir));
  if (pid == 0) return find_running(directories);
  Result<StatView> view = find_running(directories, pid, false);
  if (!view) return std::unexpected(view.error());
  std::vector<StatView> views;
  views.push_back(std::move(*view));
  return views;
}

// So that the first block of a watch has rates, too: a look that prints nothing, half a second before it at most.
void look_first(const CommandLine& line, pid_t pid, std::uint64_t every_ns, LastLooks& looks) {
  constexpr std::uint64_t kFirstMax = 500'000'000;
  Result<std::vector<StatView>> views = pages_of(line, pid);
  if (!views || views->empty()) return;  // the look that prints says so
  for (const StatView& view : *views) note(looks, *view, now_ns());
  pause_for(std::min(every_ns, kFirstMax));
}

// What the program has in this machine's memory, by kind.
int look_at_kinds(const StatView& view, bool as_json) {
  Result<MemoryByKind> memory = memory_of(*view);
  if (!memory) {
    Error error = memory.error();
    return fail(kEnvironment, error.remedy("ask as the user who runs the program, or as root"));
  }
  if (as_json) {
    Json json{{"schema_version", kSchemaVersion},
              {"hinterland_version", HINTERLAND_VERSION},
              {"pid", view->pid},
              {"program", text_of(view->program)},
              {"memory", memory_json(*memory)}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::printf("%s\n%s", coloured(kBold, text_of(view->program) + " (" + std::to_string(view->pid) + ")").c_str(),
                memory_text(*memory).c_str());
  }
  return std::fflush(stdout) == 0 ? kSuccess : kEnvironment;
}

// Why --kinds cannot be done as asked.
Status kinds_are_possible(const CommandLine& line) {
  if (!line.is_given(OptionId::kinds)) return {};
  if (line.rest().empty())
    return std::unexpected(Error::make(0, "stat --kinds: no process id given")
                               .remedy("hinterland stat --kinds PID; 'hinterland stat' lists the programs"));
  if (line.is_given(OptionId::watch) || line.text(OptionId::format) == "openmetrics")
    return std::unexpected(Error::make(0, "--kinds is one look at one program, as text or JSON")
                               .remedy("leave out --watch and --format openmetrics"));
  return {};
}

// One look. `pid` 0 for all. The exit status.
int look(const CommandLine& line, pid_t pid, LastLooks& looks) {
  bool watching = line.is_given(OptionId::watch);
  Result<std::vector<StatView>> found = pages_of(line, pid);
  if (!found) return fail(kEnvironment, found.error());
  std::vector<StatView> views = std::move(*found);
  bool as_json = line.number(OptionId::json) != 0 || line.text(OptionId::format) == "json";
  if (line.number(OptionId::kinds) != 0) return look_at_kinds(views[0], as_json);
  bool clear = watching && isatty(STDOUT_FILENO) == 1;
  if (as_json) {
    print_json(views, watching);
  } else if (line.text(OptionId::format) == "openmetrics") {
    std::fputs(openmetrics_text(views).c_str(), stdout);
  } else {
    if (clear) std::printf("\033[H\033[2J");
    if (pid != 0)
      print_details(views[0], looks);
    else
      print_table(views, looks, watching);
  }
  return std::fflush(stdout) == 0 ? kSuccess : kEnvironment;
}

}  // namespace

int stat_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("stat"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"stat"});
  if (line->rest().size() > 1) return fail(kUsage, unexpected_argument("stat", line->rest()[1]));
  if (line->number(OptionId::json) != 0 && line->is_flag(OptionId::format) &&
      line->text(OptionId::format) != "json") {
    Error error =
        Error::make(0, "--json and --format %s contradict each other", line->text(OptionId::format).c_str());
    return fail(kUsage, error.remedy("leave one of them out"));
  }
  if (Status possible = kinds_are_possible(*line); !possible) return fail(kUsage, possible.error());
  pid_t pid = 0;
  if (!line->rest().empty()) {
    Result<pid_t> given = parse_pid(line->rest()[0]);
    if (!given) return fail(kUsage, given.error());
    pid = *given;
  }
  LastLooks looks;
  std::uint64_t every_ns = line->number(OptionId::watch);
  if (every_ns != 0 && line->number(OptionId::json) == 0) look_first(*line, pid, every_ns, looks);
  int status = look(*line, pid, looks);
  while (status == kSuccess && every_ns != 0) {
    pause_for(every_ns);
    // The program watched is gone: the end of the watch, not a failure.
    if (pid != 0 && !find_running(searched_directories(line->text(OptionId::stat_dir)), pid, false)) return kSuccess;
    status = look(*line, pid, looks);
  }
  return status;
}

}  // namespace hinterland::cli
