// hinterland doctor: what this kernel, these privileges and these limits allow.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/command_line.hpp"
#include "cli/figures.hpp"
#include "cli/preload_library.hpp"
#include "cli/probe.hpp"
#include "cli/terminal.hpp"

namespace hinterland::cli {
namespace {

const char* state_name(State state) {
  switch (state) {
    case State::good:
      return "ok";
    case State::information:
      return "info";
    case State::missing:
      return "missing";
    case State::warning:
      return "warning";
    case State::blocking:
      return "blocking";
  }
  return "";
}

const char* state_colour(State state) {
  if (state == State::information) return "";
  return state == State::good ? kGreen : state == State::blocking ? kRed : kYellow;
}

Finding library_finding() {
  Result<std::string> library = find_preload_library();
  if (library) return {"preload library", State::good, *library, "", ""};
  return {"preload library", State::blocking, library.error().what(), "`run` does not work",
          library.error().next_step()};
}

void print_json(const std::vector<Finding>& findings, bool will_run) {
  Json checks = Json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"name", finding.name},
                      {"state", state_name(finding.state)},
                      {"value", finding.value},
                      {"cost", finding.cost},
                      {"mend", finding.mend}});
  Json json{{"schema_version", kSchemaVersion},
            {"hinterland_version", HINTERLAND_VERSION},
            {"will_run", will_run},
            {"checks", checks}};
  std::printf("%s\n", json.dump(2).c_str());
}

void print_text(const std::vector<Finding>& findings, bool will_run) {
  for (const Finding& finding : findings) {
    std::printf("%s  %-27s %s\n", coloured(state_colour(finding.state), state_name(finding.state), 8).c_str(),
                finding.name.c_str(), finding.value.c_str());
    if (!finding.cost.empty()) std::printf("            costs: %s\n", finding.cost.c_str());
    if (!finding.mend.empty()) std::printf("            mend:  %s\n", finding.mend.c_str());
  }
  if (will_run)
    std::printf("\n`hinterland run` will work. Try: hinterland run --local 256M -v -- sort --version\n");
  else
    std::printf("\n`hinterland run` will not work here: see what is marked blocking.\n");
}

}  // namespace

int doctor_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("doctor"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"doctor"});
  if (!line->rest().empty()) return fail(kUsage, unexpected_argument("doctor", line->rest()[0]));
  std::vector<Finding> findings = examine_kernel();
  std::vector<Finding> limits = examine_limits();
  findings.insert(findings.end(), limits.begin(), limits.end());
  findings.push_back(library_finding());
  bool will_run = std::none_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.state == State::blocking; });
  if (line->number(OptionId::json) != 0)
    print_json(findings, will_run);
  else
    print_text(findings, will_run);
  return will_run ? kSuccess : kEnvironment;
}

}  // namespace hinterland::cli
