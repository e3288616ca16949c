#include "cli/sizes.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/run_once.hpp"
#include "cli/supervise.hpp"
#include "cli/tracing.hpp"

namespace hinterland::cli {
namespace {

constexpr std::size_t kSizesMax = 10;

// app.10.trace for app.trace
std::string name_of(const std::string& output, unsigned percent) {
  std::string_view ending = ".trace", all = output;
  bool ends = all.ends_with(ending) && all.size() > ending.size();
  std::string stem(ends ? all.substr(0, all.size() - ending.size()) : all);
  return stem + "." + std::to_string(percent) + (ends ? std::string(ending) : "");
}

bool ended_well(const Outcome& outcome) {
  return WIFEXITED(outcome.wait_status) && WEXITSTATUS(outcome.wait_status) == 0;
}

// Standard input from its place now on, again and again; and standard output only once.
class Streams {
 public:
  Status begin() {
    input_at_ = lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (input_at_ >= 0 || errno == EBADF) return {};
    Error error = Error::make(0, "--sizes runs the program several times, and its standard input can be read once");
    return std::unexpected(error.remedy("give it a file, or < /dev/null"));
  }
  void again() {
    if (input_at_ >= 0) lseek(STDIN_FILENO, input_at_, SEEK_SET);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return;
    std::fflush(stdout);
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
  }

 private:
  off_t input_at_ = -1;
};

// Without far memory. The error is one of the program's, or of starting it.
struct NativeRun {
  std::uint64_t peak_bytes, took_ns;
};
Result<NativeRun> run_natively(const CommandLine& line, const std::string& path) {
  const std::uint64_t begun = now_ns();
  Result<Outcome> outcome = supervise(path, line.rest());
  if (!outcome) return std::unexpected(outcome.error());
  if (!ended_well(*outcome)) {
    Error error = Error::make(0, "the program failed without far memory: there is no peak to take shares of");
    return std::unexpected(error.remedy("mend that first, or trace it with --local SIZE"));
  }
  return NativeRun{static_cast<std::uint64_t>(outcome->usage.ru_maxrss) * 1024, now_ns() - begun};
}

}  // namespace

Result<std::vector<unsigned>> sizes_of(const std::string& list) {
  std::string_view rest = list;
  std::vector<unsigned> sizes;
  while (!rest.empty()) {
    unsigned percent = 0;
    std::size_t comma = std::min(rest.find(','), rest.size());
    auto [end, problem] = std::from_chars(rest.data(), rest.data() + comma, percent);
    bool good = problem == std::errc() && end == rest.data() + comma && percent >= 1 && percent <= 100;
    if (!good || sizes.size() == kSizesMax || std::find(sizes.begin(), sizes.end(), percent) != sizes.end()) {
      sizes.clear();
      break;
    }
    sizes.push_back(percent);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!sizes.empty()) return sizes;
  Error error = Error::make(0, "--sizes: '%s' is no list of up to %zu percents", list.c_str(), kSizesMax);
  return std::unexpected(error.remedy("for example --sizes 10,25,50"));
}

int trace_sizes(CommandLine& line, const std::string& path, const std::string& library) {
  std::vector<unsigned> sizes = *sizes_of(line.text(OptionId::sizes));
  std::string output = Tracing::output_of(line);
  Streams streams;
  if (Status begun = streams.begin(); !begun) return fail(kUsage, begun.error());
  Result<NativeRun> native = run_natively(line, path);
  if (!native) return fail(native.error().code() != 0 ? status_of(native.error()) : kEnvironment, native.error());
  const std::uint64_t peak = native->peak_bytes;
  log::info("peak memory %s", rounded_size_text(peak).c_str());
  Result<ReportFile> no_report = ReportFile::open("", false);
  std::string names;
  for (unsigned percent : sizes) {
    std::uint64_t bytes = std::max(page_floor(peak / 100 * percent), option(OptionId::local).minimum);
    if (bytes > peak / 100 * percent)
      log::warning("%u %% of %s is less than the smallest budget: %s instead", percent,
                   rounded_size_text(peak).c_str(), rounded_size_text(bytes).c_str());
    line.settle_for(OptionId::local, bytes);
    fit_into_group(line);
    export_settings(line, library);
    streams.again();
    std::string name = name_of(output, percent);
    std::expected<Outcome, RunFailure> outcome = run_once(line, path, *no_report, name);
    if (!outcome) return fail(outcome.error().status, outcome.error().error);
    if (!ended_well(*outcome)) end_like(*outcome);
    if (access(name.c_str(), F_OK) == 0) names += " " + name;
  }
  if (!names.empty())
    std::fprintf(
        stderr,
        "hinterland: compare them with: hinterland report%s\nhinterland: natively it took %.2f s, for: hinterland "
        "advise TRACE --budget --native %.2fs\n",
        names.c_str(), static_cast<double>(native->took_ns) / 1e9, static_cast<double>(native->took_ns) / 1e9);
  return kSuccess;
}

}  // namespace hinterland::cli
