// hinterland stat: live figures of running programs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/figures.hpp"
#include "cli/openmetrics.hpp"
#include "cli/pid.hpp"
#include "cli/running.hpp"
#include "cli/terminal.hpp"

namespace hinterland::cli {
namespace {

// What a program had counted at the last look, for rates and for the latencies since then.
struct LastLook {
  std::uint64_t at_ns = 0;
  Figures figures;
};
using LastLooks = std::map<pid_t, std::unique_ptr<LastLook>>;

void note(LastLooks& looks, const StatPage& page, std::uint64_t at_ns) {
  auto look = std::make_unique<LastLook>();
  look->at_ns = at_ns;
  look->figures.add(page);
  looks[page.pid] = std::move(look);
}

const LastLook* last_of(const LastLooks& looks, pid_t pid) {
  auto found = looks.find(pid);
  return found == looks.end() ? nullptr : found->second.get();
}

// Of the latencies in `now`, those since the last look stay.
void keep_new(Figures& now, const LastLook* last) {
  if (last == nullptr) return;
  now.fault_latency.subtract(last->figures.fault_latency);
  now.fetch_latency.subtract(last->figures.fetch_latency);
}

double a_second(std::uint64_t before, std::uint64_t now, const LastLook& last, std::uint64_t at_ns) {
  if (at_ns <= last.at_ns || now < before) return 0;
  return static_cast<double>(now - before) * 1e9 / static_cast<double>(at_ns - last.at_ns);
}

double rate(const LastLook& last, const Figures& now, Counter counter, std::uint64_t at_ns) {
  return a_second(last.figures[counter], now[counter], last, at_ns);
}

void print_row(const StatView& view, const LastLook* last, std::uint64_t at_ns) {
  Figures figures;
  figures.add(*view);
  std::printf("%7d  %-16.16s %10s %10s %10s", view->pid, text_of(view->program).c_str(),
              rounded_size_text(figures[Gauge::budget_bytes]).c_str(),
              rounded_size_text(figures[Gauge::resident_bytes]).c_str(),
              rounded_size_text(figures[Gauge::far_bytes]).c_str());
  keep_new(figures, last);
  if (last != nullptr) {
    double faults = a_second(last->figures.faults(), figures.faults(), *last, at_ns);
    std::printf(" %10.0f %10.0f %10.0f", faults, rate(*last, figures, Counter::pages_in, at_ns),
                rate(*last, figures, Counter::pages_out, at_ns));
  } else {
    std::printf(" %10llu %10llu %10llu", static_cast<unsigned long long>(figures.faults()),
                static_cast<unsigned long long>(figures[Counter::pages_in]),
                static_cast<unsigned long long>(figures[Counter::pages_out]));
  }
  std::printf(" %9s  %s\n", duration_text(figures.fault_latency.percentile_ns(0.99)).c_str(),
              text_of(view->far_url).c_str());
}

void print_table(const std::vector<StatView>& views, LastLooks& looks, bool rates) {
  std::string unit = rates ? "/s" : "";
  std::string header = "    PID  PROGRAM              BUDGET   RESIDENT        FAR " +
                       std::string(rates ? "  " : "    ") + "FAULTS" + unit + (rates ? "  " : "    ") + " PAGES IN" +
                       unit + " " + (rates ? "OUT/s" : "PAGES OUT") + "  FAULT P99  FAR DEVICE";
  std::printf("%s\n", coloured(kBold, header).c_str());
  std::uint64_t at_ns = now_ns();
  LastLooks seen;
  for (const StatView& view : views) {
    print_row(view, rates ? last_of(looks, view->pid) : nullptr, at_ns);
    note(seen, *view, at_ns);
  }
  looks.swap(seen);
  if (views.empty()) std::printf("no program of yours runs under Hinterland; start one with 'hinterland run'\n");
}

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

void pause_for(std::uint64_t ns) {
  timespec pause{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&pause, nullptr);
}

// So that the first block of a watch has rates, too: a look that prints nothing, half a second before it at most.
void look_first(const CommandLine& line, pid_t pid, std::uint64_t every_ns, LastLooks& looks) {
  constexpr std::uint64_t kFirstMax = 500'000'000;
  Result<std::vector<StatView>> views = pages_of(line, pid);
  if (!views || views->empty()) return;  // the look that prints says so
  for (const StatView& view : *views) note(looks, *view, now_ns());
  pause_for(std::min(every_ns, kFirstMax));
}

// One look. `pid` 0 for all. The exit status.
int look(const CommandLine& line, pid_t pid, LastLooks& looks) {
  bool watching = line.is_given(OptionId::watch);
  Result<std::vector<StatView>> found = pages_of(line, pid);
  if (!found) return fail(kEnvironment, found.error());
  std::vector<StatView> views = std::move(*found);
  bool clear = watching && isatty(STDOUT_FILENO) == 1;
  if (line.number(OptionId::json) != 0 || line.text(OptionId::format) == "json") {
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
