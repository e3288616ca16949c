// The half of probe.hpp that reads limits and resources.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>

#include "base/available_memory.hpp"
#include "base/options.hpp"
#include "base/size.hpp"
#include "base/stats_folder.hpp"
#include "base/units.hpp"
#include "cli/probe.hpp"
#include "kernel/scheduling.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kDescriptorsNeeded = 64;         // a fault descriptor, an event or sockets, and room to spare
constexpr std::uint64_t kMapsComfortable = 65'530;       // the kernel's default
constexpr std::uint64_t kSharedMemoryNeeded = 1 * kMiB;  // a statistics page is a few KiB a process

std::string first_word(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

rlim_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  getrlimit(resource, &limit);
  return limit.rlim_cur;
}

std::string limit_text(rlim_t limit, bool bytes) {
  if (limit == RLIM_INFINITY) return "unlimited";
  return bytes ? rounded_size_text(limit) : std::to_string(limit);
}

Finding descriptors() {
  rlim_t limit = soft_limit(RLIMIT_NOFILE);
  Finding finding{"descriptors", State::good, limit_text(limit, false), "", ""};
  if (limit >= kDescriptorsNeeded) return finding;
  return {finding.name, State::blocking, finding.value, "no room for the runtime's own descriptors",
          "ulimit -n 1024"};
}

Finding address_space() {
  rlim_t limit = soft_limit(RLIMIT_AS);
  Finding finding{"address space", State::good, limit_text(limit, true), "", ""};
  if (limit == RLIM_INFINITY) return finding;
  std::uint64_t smallest = option(OptionId::window).minimum;
  bool blocking = limit < 2 * smallest;
  return {finding.name, blocking ? State::blocking : State::warning, finding.value,
          "the window for far memory must fit into it: choose --window below that", "ulimit -v unlimited"};
}

// It counts private memory that can be written: the program's, which the kernel would refuse it, too, and our tables.
Finding data() {
  rlim_t limit = soft_limit(RLIMIT_DATA);
  Finding finding{"data segment", State::good, limit_text(limit, true), "", ""};
  if (limit == RLIM_INFINITY) return finding;
  std::uint64_t smallest = option(OptionId::window).minimum;
  return {finding.name, limit < 2 * smallest ? State::blocking : State::warning, finding.value,
          "the tables of the window have to fit into it, beside the program's memory", "ulimit -d unlimited"};
}

Finding locked_memory() {
  rlim_t limit = soft_limit(RLIMIT_MEMLOCK);
  // We lock nothing and register no buffers.
  return {"memlock", State::information, limit_text(limit, true) + " (nothing is locked)", "", ""};
}

Finding handler_priority() {
  if (may_leave_idle_policy()) return {"handler's priority", State::good, "may be lowered and raised", "", ""};
  return {"handler's priority", State::missing, "may not be raised again",
          "a fault costs up to four times as much on a machine with idle CPUs",
          "sudo prlimit --nice=20 --pid $$ (for good: `nice` in /etc/security/limits.conf)"};
}

Finding map_count() {
  std::string text = first_word("/proc/sys/vm/max_map_count");
  Finding finding{"max_map_count", State::good, text, "", ""};
  if (text.empty() || std::stoull(text) >= kMapsComfortable) return finding;
  return {finding.name, State::warning, text, "programs with many mappings meet ENOMEM",
          "sudo sysctl vm.max_map_count=65530"};
}

Finding overcommit() {
  std::string mode = first_word("/proc/sys/vm/overcommit_memory");
  static constexpr const char* kNames[] = {"0 (heuristic)", "1 (always)", "2 (never)"};
  Finding finding{"overcommit", State::good, mode.size() == 1 && mode <= "2" ? kNames[mode[0] - '0'] : mode, "", ""};
  if (mode != "2") return finding;
  return {finding.name, State::warning, finding.value, "mappings far larger than memory are refused by the kernel",
          "sudo sysctl vm.overcommit_memory=0"};
}

Finding huge_pages() {
  std::string text;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(file, text);
  std::size_t begin = text.find('['), end = text.find(']');
  std::string mode = end == std::string::npos ? "not there" : text.substr(begin + 1, end - begin - 1);
  return {"huge pages", State::information, mode, "", ""};
}

Finding cgroup() {
  AvailableMemory memory = available_memory();
  if (memory.cgroup_limit_bytes == 0) return {"cgroup memory limit", State::good, "none", "", ""};
  std::string value = rounded_size_text(memory.cgroup_limit_bytes) + " (version " +
                      std::to_string(memory.cgroup_version) + "), " + rounded_size_text(memory.cgroup_room_bytes) +
                      " free";
  if (memory.cgroup_room_bytes >= 4 * option(OptionId::local).minimum)
    return {"cgroup memory limit", State::good, value, "", ""};
  return {"cgroup memory limit", State::warning, value, "the kernel kills what grows beyond it",
          "raise the group's limit (memory.max, or memory.limit_in_bytes)"};
}

Finding memory() {
  std::uint64_t bytes = available_memory().bytes();
  Finding finding{"available memory", State::good, rounded_size_text(bytes), "", ""};
  if (bytes >= 4 * option(OptionId::local).minimum) return finding;
  return {finding.name, State::warning, finding.value, "too little for any useful budget", "end other programs"};
}

Finding shared_memory() {
  char folder[kStatisticsPathMax];
  default_statistics_directory(folder, sizeof folder);
  std::string parent(folder, std::string_view(folder).rfind('/'));
  const char* cost = "`stat`, `tune` and `--report` see nothing";
  struct statvfs status;
  if (statvfs(parent.c_str(), &status) != 0 || access(parent.c_str(), W_OK) != 0)
    return {parent, State::missing, "cannot be written", cost,
            "give --stat-dir DIRECTORY, on a tmpfs if there is one"};
  std::uint64_t bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (bytes >= kSharedMemoryNeeded) return {parent, State::good, rounded_size_text(bytes) + " free", "", ""};
  return {parent, State::missing, rounded_size_text(bytes) + " free", cost,
          "remove files from " + parent + ", or give --stat-dir DIRECTORY"};
}

}  // namespace

std::vector<Finding> examine_limits() {
  return {descriptors(), address_space(), data(),   locked_memory(), handler_priority(), map_count(),
          overcommit(),  huge_pages(),    cgroup(), memory(),        shared_memory()};
}

}  // namespace hinterland::cli
