// hinterland check: which of the compiler's hints are worth it, by runs with some of them on.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/plain_file.hpp"
#include "base/size.hpp"
#include "cli/before_run.hpp"
#include "cli/check/check_report.hpp"
#include "cli/check/choice_file.hpp"
#include "cli/check/site_runs.hpp"
#include "cli/command_line.hpp"
#include "cli/executable.hpp"
#include "cli/run_once.hpp"
#include "cli/sites_of_trace.hpp"
#include "trace/site_table.hpp"

namespace hinterland::cli {
namespace {

// Below, starting a program and taking it over are most of its time.
constexpr double kShortestRun_s = 0.2;

Status check_options(const CommandLine& line) {
  for (OptionId id : {OptionId::report, OptionId::core, OptionId::local_total})
    if (line.is_flag(id)) {
      Error error = Error::make(0, "check: %s is for a single run", line[id].named.c_str());
      return std::unexpected(error.remedy("leave it out, or use hinterland run"));
    }
  for (OptionId id : {OptionId::sites, OptionId::record_sites})
    if (line.is_flag(id)) {
      Error error = Error::make(0, "check: %s is what it finds out", line[id].named.c_str());
      return std::unexpected(error.remedy("leave it out; a profile stands before --: hinterland check FILE -- ..."));
    }
  if (line.text(OptionId::output) == "-") {
    Error error = Error::make(0, "check: --output - is no file");
    return std::unexpected(error.remedy("name a file: standard output has the table"));
  }
  if (!line.rest().empty()) return {};
  Error error = Error::make(0, "check: no program given");
  return std::unexpected(error.remedy("hinterland check -- PROGRAM ARGUMENTS..."));
}

Status check_environment(const CommandLine& line) {
  if (Status policy = check_policy(line); !policy) return policy;
  if (Status catching = check_catching(line); !catching) return catching;
  if (Status system = check_system(line); !system) return system;
  return check_device(line, line.text(OptionId::far));
}

class Checker {
 public:
  Checker(const CommandLine& line, SiteRuns& runs, const std::string& path) : line_(line), runs_(runs), path_(path) {
    found_.program = line.rest()[0];
    found_.local_bytes = line.number(OptionId::local);
    found_.far_url = line.text(OptionId::far);
    found_.clock = line.text(OptionId::clock);
    found_.pairs = line.number(OptionId::pairs);
  }

  // Which hints there are, how often they are passed, and where they stand.
  Status look_at_hints();
  // Which of those that the profile leaves on lose.
  Status measure();
  const CheckFound& found() const { return found_; }
  Status write(const ChoiceFile& file);

 private:
  Result<std::vector<std::string>> profiles();
  void make_groups();
  Status warm_up();
  Status run_pairs();
  Status compare_ways();
  std::string profile_of_sites(const std::vector<bool>& on) const;
  std::string profile_of_groups(const Pattern& on) const;

  const CommandLine& line_;
  SiteRuns& runs_;
  const std::string& path_;
  CheckFound found_;
};

// Nothing was counted: there is nothing to count, or who counted did not get to write it.
std::unexpected<Error> without_hints(const std::string& program) {
  const Result<trace::SiteTableOfFile> table = trace::read_site_table(program);
  if (table && !table->entries.empty()) {
    Error error =
        Error::make(0, "nothing was counted: %s ended by _exit(), or became another program", program.c_str());
    return std::unexpected(error.remedy("let it end by exit(), which writes what was counted"));
  }
  Error error = Error::make(0, "%s has no hints by the compiler, nor has a library that it loads", program.c_str());
  return std::unexpected(error.remedy("compile it with them: hinterland cc -- clang-19 -O2 -g ..."));
}

Result<std::vector<std::string>> Checker::profiles() {
  if (line_.operand().empty()) {
    Result<std::vector<std::string>> counted = runs_.count();
    if (!counted || !counted->empty()) return counted;
    return without_hints(path_);
  }
  Result<std::string> text = is_trace(line_.operand())
                                 ? profile_of_trace(line_.operand())
                                 : read_plain_file(line_.operand(), "the profile of hints", site_profile::kBytesMax);
  if (text) return std::vector<std::string>{*text};
  Error error = text.error();
  if (error.next_step()[0] == '\0')
    error.remedy("name one that is there, or none: then one of this program is counted");
  return std::unexpected(error);
}

std::unexpected<Error> wrong_profile(const CommandLine& line, const Error& why) {
  const std::string name = line.operand().empty() ? "what was counted" : line.operand();
  Error error = Error::make(0, "%s: %s", name.c_str(), why.what());
  return std::unexpected(error.remedy("leave the profile out, and one of this program is counted"));
}

Status Checker::look_at_hints() {
  Result<std::vector<std::string>> texts = profiles();
  if (!texts) return std::unexpected(texts.error());
  Result<CheckedSites> checked = sites_in(*texts);
  if (!checked) return wrong_profile(line_, checked.error());
  if (checked->modules.empty()) return without_hints(path_);
  if (Status files = find_files(*checked, path_); !files) return wrong_profile(line_, files.error());
  if (checked->all_are_static() && !checked->sites.empty()) {
    Error error = Error::make(0, "%s was compiled with --static-hints: its hints are always on", path_.c_str());
    return std::unexpected(
        error.remedy("compile it without, or leave functions out by annotate(\"hinterland:never\")"));
  }
  if (checked->misses() == 0) {
    Error error = Error::make(0, "no hint found a page missing: with %s local the program has what it uses",
                              rounded_size_text(line_.number(OptionId::local)).c_str());
    return std::unexpected(error.remedy("choose a smaller --local, with which it pages"));
  }
  found_.checked = std::move(*checked);
  return {};
}

void Checker::make_groups() {
  std::vector<std::size_t> candidates;
  std::vector<Weight> weights;
  for (std::size_t i = 0; i < found_.checked.sites.size(); ++i) {
    const CheckedSite& site = found_.checked.sites[i];
    if (!site.is_worth_it() || site.is_static) continue;
    candidates.push_back(i);
    weights.push_back({site.counted.passes, site.counted.misses});
  }
  for (const std::vector<std::size_t>& each : groups_of(weights, groups_for(found_.pairs))) {
    CheckedGroup group;
    for (std::size_t index : each) group.sites.push_back(candidates[index]);
    found_.groups.push_back(std::move(group));
  }
}

std::string Checker::profile_of_sites(const std::vector<bool>& on) const {
  return profile_of(found_.checked, on, [](std::size_t) { return std::string("off"); });
}

std::string Checker::profile_of_groups(const Pattern& on) const {
  std::vector<bool> sites(found_.checked.sites.size(), false);
  for (std::size_t i = 0; i < on.size(); ++i)
    if (on[i])
      for (std::size_t site : found_.groups[i].sites) sites[site] = true;
  return profile_of_sites(sites);
}

// Not counted. It shows whether there is anything to measure.
Status Checker::warm_up() {
  const Result<double> seconds = runs_.seconds(profile_of_groups(Pattern(found_.groups.size(), true)), "to warm up");
  if (!seconds) return std::unexpected(seconds.error());
  if (runs_.pages_in() == 0) {
    Error error = Error::make(0, "no page came from far memory: with %s local the program has what it uses",
                              rounded_size_text(line_.number(OptionId::local)).c_str());
    return std::unexpected(error.remedy("choose a smaller --local, with which it pages"));
  }
  if (*seconds >= kShortestRun_s) return {};
  Error error = Error::make(0, "a run takes %.2f s: too short to measure what hints cost", *seconds);
  return std::unexpected(
      error.remedy("give the program more to do: %.1f s at least, better some seconds", kShortestRun_s));
}

Status Checker::run_pairs() {
  const std::vector<Pattern> patterns = patterns_for(found_.pairs, found_.groups.size());
  std::vector<double> differences;
  runs_.expect(2 * patterns.size());
  for (const Pattern& pattern : patterns) {
    Pattern others = pattern;
    others.flip();
    const std::string pair = "pair " + std::to_string(differences.size() + 1);
    const Result<double> one = runs_.seconds(profile_of_groups(pattern), pair);
    if (!one) return std::unexpected(one.error());
    const Result<double> other = runs_.seconds(profile_of_groups(others), pair);
    if (!other) return std::unexpected(other.error());
    differences.push_back(std::log(*one / *other));
    found_.pair_seconds.insert(found_.pair_seconds.end(), {*one, *other});
  }
  const std::vector<Effect> effects = effects_of(patterns, differences);
  for (std::size_t i = 0; i < effects.size(); ++i) found_.groups[i].effect = effects[i];
  return {};
}

// Each loser was measured beside all kinds of others, but not beside those that are left: the choice is run as well.
Status Checker::compare_ways() {
  const std::uint64_t rounds = std::max<std::uint64_t>(3, found_.pairs / 4);
  const bool drops = found_.dropped_sites() != 0;
  const std::string none = profile_of_groups(Pattern(found_.groups.size(), false)),
                    all = profile_of_groups(Pattern(found_.groups.size(), true)),
                    choice = profile_of_sites(found_.on());
  std::vector<std::string> profiles{none, all};
  found_.ways = {{"no hints", {}}, {"the profile's", {}}};
  if (drops) profiles.push_back(choice), found_.ways.push_back({"the choice", {}});
  runs_.expect(rounds * profiles.size());
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      const Result<double> seconds = runs_.seconds(profiles[i], found_.ways[i].name);
      if (!seconds) return std::unexpected(seconds.error());
      found_.ways[i].seconds.push_back(*seconds);
    }
  if (!drops) return {};
  std::vector<double> differences;
  for (std::uint64_t round = 0; round < rounds; ++round)
    differences.push_back(std::log(found_.ways[2].seconds[round] / found_.ways[1].seconds[round]));
  found_.taken_back = verdict_of(effect_of(differences)) == Verdict::loses;
  return {};
}

Status Checker::measure() {
  make_groups();
  if (found_.groups.empty()) return {};
  if (Status warm = warm_up(); !warm) return warm;
  if (Status pairs = run_pairs(); !pairs) return pairs;
  return compare_ways();
}

Status Checker::write(const ChoiceFile& file) {
  const std::string head = "# Written by 'hinterland check': " + rounded_size_text(found_.local_bytes) +
                           " local, far " + found_.far_url + ".\n";
  std::string text = profile_of(found_.checked, found_.on(), [&](std::size_t site) { return found_.why_off(site); });
  text.insert(text.find('\n') + 1, head);
  if (Status written = file.write(text); !written) return written;
  found_.path = file.path();
  found_.read_by_run = file.is_read_by_run();
  return {};
}

int measure_and_tell(const CommandLine& line, SiteRuns& runs, const std::string& path) {
  Checker checker(line, runs, path);
  if (Status known = checker.look_at_hints(); !known) return fail(kEnvironment, known.error());
  // Known before hours are spent.
  Result<ChoiceFile> file = ChoiceFile::find(line.text(OptionId::output), program_of(checker.found().checked),
                                             line.number(OptionId::force) != 0);
  if (!file) return fail(kEnvironment, file.error());
  if (Status measured = checker.measure(); !measured) return fail(kEnvironment, measured.error());
  if (Status written = checker.write(*file); !written) return fail(kEnvironment, written.error());
  const bool json = line.number(OptionId::json) != 0;
  const std::string text = json ? check_json(checker.found()).dump(2) + "\n" : check_text(checker.found());
  std::fputs(text.c_str(), stdout);
  return kSuccess;
}

int check(CommandLine& line) {
  Result<std::string> path = find_program(line.rest()[0]);
  if (!path) return fail(status_of(path.error()), path.error());
  if (Status program = check_program(*path); !program) return fail(status_of(program.error()), program.error());
  Result<std::string> library = libraries_for(line);
  if (!library) return fail(kEnvironment, library.error());
  if (Status environment = check_environment(line); !environment) return fail(kEnvironment, environment.error());
  fit_into_group(line);
  Result<RunFiles> files = RunFiles::make();
  if (!files) return fail(kEnvironment, files.error());
  Runner runner(line, *path, *library, *files);
  Way way;
  way.kind = Way::Kind::far;
  way.url = line.text(OptionId::far);
  way.local_bytes = line.number(OptionId::local);
  SiteRuns runs(runner, *files, way, static_cast<CheckClock>(line.number(OptionId::clock)));
  return measure_and_tell(line, runs, *path);
}

}  // namespace

int check_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("check"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"check"});
  if (Status options = check_options(*line); !options) return fail(kUsage, options.error());
  return check(*line);
}

}  // namespace hinterland::cli
