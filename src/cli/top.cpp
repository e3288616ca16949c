// hinterland top: all programs on far memory and all memory servers of this machine, the busiest first.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/available_memory.hpp"
#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/figures.hpp"
#include "cli/program_table.hpp"
#include "cli/running.hpp"
#include "cli/servers.hpp"
#include "cli/terminal.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kEveryNs = 1'000'000'000;

std::vector<std::string> entries_of(const char* folder, const std::string& prefix) {
  std::vector<std::string> names;
  DIR* open = opendir(folder);
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open))
    if (std::string_view(entry->d_name).starts_with(prefix) && entry->d_name[0] != '.')
      names.push_back(std::string(folder) + "/" + entry->d_name);
  closedir(open);
  return names;
}

// Root sees the programs of all users, in the folders that are usual.
std::vector<std::string> directories_of(const CommandLine& line) {
  std::vector<std::string> directories = searched_directories(line.text(OptionId::stat_dir));
  if (geteuid() != 0 || line.is_given(OptionId::stat_dir)) return directories;
  std::vector<std::string> others = entries_of("/dev/shm", "hinterland-");
  for (const std::string& user : entries_of("/run/user", "")) others.push_back(user + "/hinterland");
  for (const std::string& other : others)
    if (std::ranges::find(directories, other) == directories.end()) directories.push_back(other);
  return directories;
}

// Most faults since the last look first; of those that were not there then, most at all.
void sort_by_faults(std::vector<StatView>& views, const LastLooks& looks) {
  auto faults = [&looks](const StatView& view) {
    Figures figures;
    figures.add(*view);
    const LastLook* last = last_of(looks, view->pid);
    std::uint64_t before = last != nullptr ? last->figures.faults() : 0;
    return figures.faults() - std::min(before, figures.faults());
  };
  std::ranges::stable_sort(views, std::ranges::greater{}, faults);
}

struct Totals {
  std::uint64_t budget = 0, resident = 0, far = 0, served = 0;
};

Totals totals_of(const std::vector<StatView>& views, const std::vector<RunningServer>& servers) {
  Figures figures;
  for (const StatView& view : views) figures.add(*view);
  Totals totals{figures[Gauge::budget_bytes], figures[Gauge::resident_bytes], figures[Gauge::far_bytes], 0};
  for (const RunningServer& server : servers) totals.served += server.resident_bytes;
  return totals;
}

void print_servers(const std::vector<RunningServer>& servers) {
  if (servers.empty()) return;
  std::printf("\n%s\n", coloured(kBold, "    PID     USER   RESIDENT   CPU TIME  SERVER").c_str());
  for (const RunningServer& server : servers)
    std::printf("%7d %8u %10s %10s  serve %s\n", static_cast<int>(server.pid), static_cast<unsigned>(server.user),
                rounded_size_text(server.resident_bytes).c_str(),
                duration_text(static_cast<std::uint64_t>(server.cpu_s * 1e9)).c_str(), server.arguments.c_str());
}

void print_text(const std::vector<StatView>& views, const std::vector<RunningServer>& servers, LastLooks& looks,
                bool rates) {
  Totals totals = totals_of(views, servers);
  std::printf("%zu program%s: budget %s, resident %s, far %s; %zu server%s: resident %s; available here: %s\n\n",
              views.size(), views.size() == 1 ? "" : "s", rounded_size_text(totals.budget).c_str(),
              rounded_size_text(totals.resident).c_str(), rounded_size_text(totals.far).c_str(), servers.size(),
              servers.size() == 1 ? "" : "s", rounded_size_text(totals.served).c_str(),
              rounded_size_text(available_memory().bytes()).c_str());
  print_table(views, looks, rates);
  print_servers(servers);
}

void print_json(const std::vector<StatView>& views, const std::vector<RunningServer>& servers, bool one_line) {
  Json programs = Json::array(), served = Json::array();
  for (const StatView& view : views) programs.push_back(program_json(*view));
  for (const RunningServer& server : servers)
    served.push_back({{"pid", server.pid},
                      {"user_id", server.user},
                      {"resident_bytes", server.resident_bytes},
                      {"cpu_time_s", server.cpu_s},
                      {"arguments", server.arguments}});
  Json json{{"schema_version", kSchemaVersion},
            {"hinterland_version", HINTERLAND_VERSION},
            {"available_bytes", available_memory().bytes()},
            {"programs", std::move(programs)},
            {"servers", std::move(served)}};
  std::printf("%s\n", json.dump(one_line ? -1 : 2).c_str());
}

// The exit status.
int look(const CommandLine& line, LastLooks& looks, bool repeats) {
  Result<std::vector<StatView>> views = find_running(directories_of(line));
  if (!views) return fail(kEnvironment, views.error());
  std::vector<RunningServer> servers = find_servers();
  sort_by_faults(*views, looks);
  if (repeats && isatty(STDOUT_FILENO) == 1) std::printf("\033[H\033[2J");
  if (line.number(OptionId::json) != 0)
    print_json(*views, servers, repeats);
  else
    print_text(*views, servers, looks, repeats);
  return std::fflush(stdout) == 0 ? kSuccess : kEnvironment;
}

// So that the first block has rates.
void look_first(const CommandLine& line, LastLooks& looks) {
  constexpr std::uint64_t kFirstNs = 250'000'000;
  Result<std::vector<StatView>> views = find_running(directories_of(line));
  if (!views || views->empty()) return;
  for (const StatView& view : *views) note(looks, *view, now_ns());
  pause_for(kFirstNs);
}

}  // namespace

int top_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("top"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"top"});
  if (!line->rest().empty()) return fail(kUsage, unexpected_argument("top", line->rest()[0]));
  const bool as_json = line->number(OptionId::json) != 0;
  const bool repeats = line->is_given(OptionId::watch) || (!as_json && isatty(STDOUT_FILENO) == 1);
  const std::uint64_t every_ns = line->is_given(OptionId::watch) ? line->number(OptionId::watch) : kEveryNs;
  LastLooks looks;
  if (repeats && !as_json) look_first(*line, looks);
  int status = look(*line, looks, repeats);
  while (status == kSuccess && repeats) {
    pause_for(every_ns);
    status = look(*line, looks, repeats);
  }
  return status;
}

}  // namespace hinterland::cli
