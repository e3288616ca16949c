// hinterland compare: a program natively, on far memory and under Linux swap, one after the other.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/log.hpp"
#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/before_run.hpp"
#include "cli/command_line.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/compare/swap_limit.hpp"
#include "cli/executable.hpp"
#include "cli/output_file.hpp"
#include "cli/run_once.hpp"
#include "cli/sizes.hpp"

namespace hinterland::cli {
namespace {

constexpr const char* kReference = "reference";

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string sizes_text(const CommandLine& line) {
  return line.is_flag(OptionId::sizes) ? line.text(OptionId::sizes) : "50,25";
}

std::vector<std::string> devices_of(const CommandLine& line) {
  std::vector<std::string> urls = words_of(line.text(OptionId::devices));
  return urls.empty() ? std::vector<std::string>{line.text(OptionId::far)} : urls;
}

Status check_environment(const CommandLine& line) {
  if (Status catching = check_catching(line); !catching) return catching;
  if (Status system = check_system(line); !system) return system;
  for (const std::string& url : devices_of(line))
    if (Status device = check_device(line, url); !device) return device;
  return {};
}

Status check_options(const CommandLine& line) {
  for (OptionId id : {OptionId::report, OptionId::core, OptionId::local_total})
    if (line.is_flag(id)) {
      Error error = Error::make(0, "compare: %s is for a single run", line[id].named.c_str());
      return std::unexpected(error.remedy("leave it out, or use hinterland run"));
    }
  if (line.is_flag(OptionId::local) && line.is_flag(OptionId::sizes)) {
    Error error = Error::make(0, "--local and --sizes contradict each other");
    return std::unexpected(error.remedy("leave one of them out"));
  }
  if (Result<std::vector<unsigned>> sizes = sizes_of(sizes_text(line)); !sizes) return std::unexpected(sizes.error());
  for (OptionId id : {OptionId::markdown, OptionId::html}) {
    const std::string& path = line.text(id);
    if (!line.is_flag(id) || path == "-" || line.number(OptionId::force) != 0 || access(path.c_str(), F_OK) != 0)
      continue;
    Error error = Error::make(EEXIST, "%s cannot be written", path.c_str());
    return std::unexpected(error.remedy("name another file, or use --force"));
  }
  if (!line.rest().empty()) return {};
  Error error = Error::make(0, "compare: no program given");
  return std::unexpected(error.remedy("hinterland compare -- PROGRAM ARGUMENTS..."));
}

struct Budget {
  std::uint64_t bytes;
  unsigned percent;
};

std::vector<Budget> budgets_of(const CommandLine& line, std::uint64_t peak) {
  if (line.is_flag(OptionId::local)) return {{line.number(OptionId::local), 0}};
  std::vector<Budget> budgets;
  const std::vector<unsigned> percents = *sizes_of(sizes_text(line));
  for (unsigned percent : percents) {
    std::uint64_t bytes = std::max(page_floor(peak / 100 * percent), option(OptionId::local).minimum);
    bool known = std::ranges::any_of(budgets, [&](const Budget& each) { return each.bytes == bytes; });
    if (!known) budgets.push_back({bytes, percent});
  }
  return budgets;
}

// Swap is asked for and possible; or why not.
Result<bool> compares_with_swap(const CommandLine& line, Comparison& all) {
  if (line.text(OptionId::swap) == "never") return false;
  Status possible = SwapLimit::check();
  if (possible) return true;
  if (line.text(OptionId::swap) == "always") return std::unexpected(possible.error());
  all.no_swap = std::string(possible.error().what()) + "; " + possible.error().next_step() + ".";
  return false;
}

void choose_ways(const CommandLine& line, std::uint64_t peak, bool with_swap, Comparison& all) {
  all.series.push_back({{}, {}, {}});
  for (const Budget& budget : budgets_of(line, peak)) {
    for (const std::string& url : devices_of(line))
      all.series.push_back({{Way::Kind::far, url, budget.bytes, budget.percent, 0}, {}, {}});
    std::uint64_t swap = page_floor(2 * peak) + 64 * kMiB;
    if (with_swap) all.series.push_back({{Way::Kind::swap, "", budget.bytes, budget.percent, swap}, {}, {}});
  }
}

std::string end_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "was ended by signal " + std::to_string(WTERMSIG(wait_status));
  return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
}

class Comparer {
 public:
  Comparer(Runner& runner, Comparison& all, std::uint64_t rounds) : runner_(runner), all_(all), rounds_(rounds) {}

  // The first run, natively and not counted: what it prints, and how it ends, is what all others must print.
  Result<Measured> warm_up() {
    Result<Measured> first = runner_.run({}, kReference, true);
    if (!first) return first;
    if (WIFSIGNALED(first->wait_status)) {
      Error error = Error::make(0, "natively the program %s", end_of(first->wait_status).c_str());
      return std::unexpected(error.remedy("mend that first: there is nothing to compare with"));
    }
    if (first->wait_status != 0)
      log::warning(
          "natively the program %s, which often means a failure: what it prints says why, and that is compared",
          end_of(first->wait_status).c_str());
    reference_ = *first;
    return first;
  }
  Status all_rounds() {
    for (std::uint64_t round = 0; round < rounds_; ++round)
      for (Series& one : all_.series)
        if (one.failure.empty())
          if (Status done = once(one); !done) return done;
    return {};
  }

 private:
  static bool was_killed_under_swap(const Series& one, const Measured& run) {
    return one.way.kind == Way::Kind::swap && WIFSIGNALED(run.wait_status) && WTERMSIG(run.wait_status) == SIGKILL;
  }
  Status once(Series& one) {
    Result<Measured> run = runner_.run(one.way, "output", false);
    if (!run) return std::unexpected(run.error());
    ++done_;
    std::fprintf(stderr, "hinterland: [%u/%llu] %s: %.2f s\n", done_,
                 static_cast<unsigned long long>(rounds_ * all_.series.size()), one.way.name().c_str(),
                 static_cast<double>(run->wall_ns) / 1e9);
    if (run->wait_status != reference_.wait_status) return note_end(one, *run);
    if (Status same = compare_output(one, *run); !same) return same;
    one.runs.push_back(*run);
    return {};
  }
  // Under swap the kernel may kill it for want of memory. Elsewhere another end is an error.
  Status note_end(Series& one, const Measured& run) {
    one.failure = end_of(run.wait_status);
    if (was_killed_under_swap(one, run)) {
      one.runs.clear();
      return {};
    }
    Error error = Error::make(0, "%s: the program %s, where it natively %s", one.way.name().c_str(),
                              one.failure.c_str(), end_of(reference_.wait_status).c_str());
    if (one.way.kind != Way::Kind::far) return std::unexpected(error.remedy("run it alone to see why it ends so"));
    return std::unexpected(
        error.remedy("run it alone to see what it says: hinterland run --local %s --far '%s' -- ...",
                     exact_size_text(one.way.local_bytes).c_str(), one.way.url.c_str()));
  }
  Status compare_output(const Series& one, const Measured& run) {
    if (!output_is_stable_) return {};
    std::uint64_t line = first_difference(reference_.output_path, run.output_path);
    if (line == 0) return {};
    if (one.way.kind == Way::Kind::native) {
      output_is_stable_ = false;
      log::warning("the program prints something else each time (line %llu): only its exit status is compared",
                   static_cast<unsigned long long>(line));
      return {};
    }
    Error error = Error::make(0, "%s: the program prints something else than natively, from line %llu on",
                              one.way.name().c_str(), static_cast<unsigned long long>(line));
    return std::unexpected(error.remedy("if it prints the same natively each time, please report this"));
  }

  Runner& runner_;
  Comparison& all_;
  std::uint64_t rounds_;
  Measured reference_;
  unsigned done_ = 0;
  bool output_is_stable_ = true;
};

int tell(const CommandLine& line, const Comparison& all) {
  bool force = line.number(OptionId::force) != 0;
  std::string text = line.number(OptionId::json) != 0 ? comparison_json(all).dump(2) + "\n" : comparison_text(all);
  std::fputs(text.c_str(), stdout);
  if (line.is_flag(OptionId::markdown))
    if (Status done = write_file(line.text(OptionId::markdown), comparison_markdown(all), force); !done)
      return fail(kEnvironment, done.error());
  if (line.is_flag(OptionId::html))
    if (Status done = write_file(line.text(OptionId::html), comparison_html(all), force); !done)
      return fail(kEnvironment, done.error());
  return kSuccess;
}

int compare(CommandLine& line) {
  Result<std::string> path = find_program(line.rest()[0]);
  if (!path) return fail(status_of(path.error()), path.error());
  if (Status program = check_program(*path); !program) return fail(status_of(program.error()), program.error());
  Result<std::string> library = libraries_for(line);
  if (!library) return fail(kEnvironment, library.error());
  if (Status environment = check_environment(line); !environment) return fail(kEnvironment, environment.error());
  Comparison all;
  all.program = line.rest()[0];
  Result<bool> with_swap = compares_with_swap(line, all);
  if (!with_swap) return fail(kEnvironment, with_swap.error());
  Result<RunFiles> files = RunFiles::make();
  if (!files) return fail(kEnvironment, files.error());
  Runner runner(line, *path, *library, *files);
  Comparer comparer(runner, all, line.number(OptionId::repeat));
  Result<Measured> first = comparer.warm_up();
  if (!first) return fail(kEnvironment, first.error());
  std::fprintf(stderr, "hinterland: natively once, to warm up: %.2f s, %s\n",
               static_cast<double>(first->wall_ns) / 1e9, rounded_size_text(first->peak_bytes).c_str());
  choose_ways(line, first->peak_bytes, *with_swap, all);
  if (Status done = comparer.all_rounds(); !done) return fail(kEnvironment, done.error());
  return tell(line, all);
}

}  // namespace

int compare_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("compare"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"compare"});
  if (Status options = check_options(*line); !options)
    return fail(options.error().code() == 0 ? kUsage : kEnvironment, options.error());
  return compare(*line);
}

}  // namespace hinterland::cli
