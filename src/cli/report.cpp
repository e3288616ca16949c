#include "cli/report.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/duration.hpp"
#include "base/size.hpp"
#include "base/units.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kWorthSaying = 4 * kMiB;  // of far pages

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void add_all(const std::vector<StatView>& pages, Figures& total) {
  for (const StatView& page : pages) total.add(*page);
}

// The largest of all processes: each has a budget of its own.
std::uint64_t largest(Gauge gauge, const std::vector<StatView>& pages) {
  std::uint64_t largest = 0;
  for (const StatView& page : pages) {
    Figures figures;
    figures.add(*page);
    largest = std::max(largest, figures[gauge]);
  }
  return largest;
}

std::uint64_t peak_resident_bytes(const Outcome& outcome) {
  return static_cast<std::uint64_t>(outcome.usage.ru_maxrss) * kKiB;
}

// What the budget is about. The kernel's own peak would not do once pages are far: it counts the store of mem: and
// zmem:, too. Before that there is no store, and we look too rarely to have seen the peak ourselves.
std::string peak_text(const Outcome& outcome, const std::vector<StatView>& pages) {
  if (largest(Gauge::managed, pages) == 0)
    return "peak resident " + rounded_size_text(peak_resident_bytes(outcome)) + ", all of it local";
  return "peak local " + rounded_size_text(largest(Gauge::peak_anonymous_bytes, pages));
}

// Where more is local than the budget, and paging never began: it counts only what could be far.
std::string none_far_text(const RunFacts& facts, const Outcome& outcome, const std::vector<StatView>& pages) {
  if (largest(Gauge::managed, pages) != 0 || peak_resident_bytes(outcome) < facts.local_bytes / 8 * 9) return "";
  const char* kinds = facts.all_addresses
                          ? "stacks, or memory by brk"
                          : "stacks, memory by brk, or mappings at addresses that the program chose or below 4 GiB "
                            "(--addresses all)";
  return std::string("what is more than the budget cannot become far: files, shared memory, ") + kinds +
         ". How much of each: hinterland stat --kinds PID, while it runs\n";
}

// The process that took most memory of this machine, its store with it. What mem: and zmem: hold is as dear as what
// they spare, and where it does not compress, nothing is spared.
std::string store_text(const RunFacts& facts, const std::vector<StatView>& pages) {
  std::uint64_t total = 0, store = 0, stored = 0;
  for (const StatView& page : pages) {
    Figures figures;
    figures.add(*page);
    if (figures[Gauge::peak_total_bytes] <= total) continue;
    total = figures[Gauge::peak_total_bytes];
    store = figures[Gauge::store_at_peak_bytes];
    stored = figures[Gauge::stored_at_peak_bytes];
  }
  if (store == 0) return "";
  std::string text = "all memory of this machine: at most " + rounded_size_text(total) + ", with the store of " +
                     rounded_size_text(store) + " for " + rounded_size_text(stored) + " of far pages\n";
  if (stored >= kWorthSaying && store > stored / 10 * 9)
    text += "far memory at " + facts.far_url +
            " saves next to nothing here: what it keeps takes as much room as before. " +
            "Use --far file:PATH or tcp://HOST:PORT\n";
  return text;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

Json exit_status(int status) { return WIFEXITED(status) ? Json(WEXITSTATUS(status)) : Json(nullptr); }
Json death_signal(int status) { return WIFSIGNALED(status) ? Json(signal_name(WTERMSIG(status))) : Json(nullptr); }

}  // namespace

Json report_json(const RunFacts& facts, const Outcome& outcome, const std::vector<StatView>& pages) {
  Json programs = Json::array();
  for (const StatView& page : pages) programs.push_back(program_json(*page));
  Figures total;
  add_all(pages, total);
  return {{"schema_version", kSchemaVersion},
          {"hinterland_version", HINTERLAND_VERSION},
          {"program", facts.program},
          {"exit_status", exit_status(outcome.wait_status)},
          {"death_signal", death_signal(outcome.wait_status)},
          {"wall_time_s", static_cast<double>(outcome.wall_ns) / 1e9},
          {"user_cpu_time_s", seconds(outcome.usage.ru_utime)},
          {"system_cpu_time_s", seconds(outcome.usage.ru_stime)},
          {"peak_anonymous_bytes", largest(Gauge::peak_anonymous_bytes, pages)},
          {"peak_total_bytes", largest(Gauge::peak_total_bytes, pages)},
          {"peak_resident_bytes", peak_resident_bytes(outcome)},
          {"budget_bytes", facts.local_bytes},
          {"far_url", facts.far_url},
          {"policy", facts.policy},
          {"process_count", pages.size()},
          {"totals",
           {{"counters", counters_json(total)},
            {"fault_latency", latency_json(total.fault_latency)},
            {"fetch_latency", latency_json(total.fetch_latency)}}},
          {"processes", programs}};
}

std::string summary_text(const RunFacts& facts, const Outcome& outcome, const std::vector<StatView>& pages) {
  Figures total;
  add_all(pages, total);
  int status = outcome.wait_status;
  std::string end = WIFSIGNALED(status) ? "died of " + signal_name(WTERMSIG(status))
                                        : "ended with status " + std::to_string(WEXITSTATUS(status));
  auto number = [&](Counter counter) { return std::to_string(total[counter]); };
  std::string text = facts.program + " " + end + " after " + duration_text(outcome.wall_ns) + "; " +
                     peak_text(outcome, pages) + ", budget " + rounded_size_text(facts.local_bytes) + "\n";
  if (pages.empty()) return text + "no process of it left figures (was far memory put under it?)\n";
  text += std::to_string(pages.size()) + (pages.size() == 1 ? " process, " : " processes, ") +
          std::to_string(total.faults()) + " faults, pages in " + number(Counter::pages_in) + " (" +
          number(Counter::pages_read_ahead) + " read ahead), out " + number(Counter::pages_out) + ", evicted " +
          number(Counter::pages_evicted) + "\n";
  if (total.fault_latency.count() != 0)
    text += "fault latency: median " + duration_text(total.fault_latency.percentile_ns(0.5)) + ", 99 % within " +
            duration_text(total.fault_latency.percentile_ns(0.99)) + "; far memory at " + facts.far_url + "\n";
  if (total[Counter::object_evacuations] != 0)
    text += "far objects: " + number(Counter::object_misses) + " misses, " + number(Counter::object_evacuations) +
            " evacuations\n";
  text += none_far_text(facts, outcome, pages);
  text += store_text(facts, pages);
  if (total[Counter::pages_lost] != 0)
    text += "LOST: pages that could not be had when touched: " + number(Counter::pages_lost) + "\n";
  return text;
}

Result<ReportFile> ReportFile::open(const std::string& path, bool overwrite) {
  ReportFile file;
  file.path_ = path;
  if (path.empty()) return file;
  if (path == "-") {
    file.descriptor_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (file.descriptor_ < 0) return std::unexpected(Error::make(errno, "--report -: standard output"));
    return file;
  }
  file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  file.made_ = file.descriptor_ >= 0;
  struct stat status;
  bool exists = !file.made_ && errno == EEXIST && stat(path.c_str(), &status) == 0;
  if (exists && S_ISREG(status.st_mode) && !overwrite) {
    Error error = Error::make(0, "--report: %s exists already", path.c_str());
    return std::unexpected(error.remedy("name another file, or give --force to overwrite it"));
  }
  if (exists) file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.descriptor_ >= 0) return file;
  Error error = Error::make(errno, "--report: %s cannot be written", path.c_str());
  return std::unexpected(error.remedy("check the directory and its permissions"));
}

ReportFile::ReportFile(ReportFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      made_(std::exchange(other.made_, false)) {}

ReportFile::~ReportFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (made_) unlink(path_.c_str());
}

Status ReportFile::write(const Json& report) {
  std::string text = report.dump(2) + "\n";
  if (path_ != "-" && ftruncate(descriptor_, 0) < 0 && errno != EINVAL)  // EINVAL: a pipe or device
    return std::unexpected(Error::make(errno, "--report: %s cannot be emptied", path_.c_str()));
  for (std::size_t at = 0; at < text.size();) {
    ssize_t written = ::write(descriptor_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(Error::make(errno, "--report: %s cannot be written", path_.c_str()));
    at += static_cast<std::size_t>(written);
  }
  made_ = false;
  return {};
}

}  // namespace hinterland::cli
