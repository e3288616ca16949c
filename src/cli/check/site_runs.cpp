#include "cli/check/site_runs.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/plain_file.hpp"
#include "base/site_profile_text.hpp"
#include "cli/output_file.hpp"

namespace hinterland::cli {
namespace {

constexpr const char* kCounted = "counted.";

std::string end_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "was ended by signal " + std::to_string(WTERMSIG(wait_status));
  return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

SiteRuns::SiteRuns(Runner& runner, const RunFiles& files, Way way, CheckClock clock)
    : runner_(runner), files_(files), way_(std::move(way)), clock_(clock) {
  way_.variables.emplace_back("HINTERLAND_RECORD_SITES", "");  // of the user's own: only counting runs count
}

Result<Measured> SiteRuns::run(const Way& way, const std::string& what) {
  const bool first = !wait_status_;  // its error messages are shown
  Result<Measured> done = runner_.run(way, "output", first);
  if (!done) return done;
  const double wall = static_cast<double>(done->wall_ns) / 1e9;
  if (total_ == 0)
    std::fprintf(stderr, "hinterland: %s: %.2f s\n", what.c_str(), wall);
  else
    std::fprintf(stderr, "hinterland: [%zu/%zu] %s: %.2f s\n", ++done_, total_, what.c_str(), wall);
  if (first && WIFSIGNALED(done->wait_status)) {
    Error error = Error::make(0, "the program %s", end_of(done->wait_status).c_str());
    return std::unexpected(error.remedy("mend that first, or run it alone to see why: hinterland run -- PROGRAM"));
  }
  if (!first && done->wait_status != *wait_status_) {
    Error error = Error::make(0, "with other hints on the program %s, where before it %s",
                              end_of(done->wait_status).c_str(), end_of(*wait_status_).c_str());
    return std::unexpected(error.remedy("if it ends the same natively each time, please report this"));
  }
  wait_status_ = done->wait_status;
  return done;
}

Result<std::vector<std::string>> SiteRuns::count() {
  Way way = way_;
  way.variables.emplace_back("HINTERLAND_RECORD_SITES", files_.path(std::string(kCounted) + "%p"));
  if (Result<Measured> done = run(way, "once, counting"); !done) return std::unexpected(done.error());
  std::vector<std::string> profiles;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(files_.path(""), problem)) {
    if (!entry.path().filename().string().starts_with(kCounted)) continue;
    Result<std::string> text = read_plain_file(entry.path().string(), "what was counted in", site_profile::kBytesMax);
    if (!text) return std::unexpected(text.error());
    profiles.push_back(std::move(*text));
  }
  return profiles;
}

Result<double> SiteRuns::seconds(const std::string& profile, const std::string& what) {
  Way way = way_;
  const std::string path = files_.path("tried.sites");
  if (Status written = write_file(path, profile, true); !written) return std::unexpected(written.error());
  way.variables.emplace_back("HINTERLAND_SITES", path);
  Result<Measured> done = run(way, what);
  if (!done) return std::unexpected(done.error());
  pages_in_ = done->pages_in;
  constexpr double kLeast = 1e-6;  // the kernel may count a short run as none
  return std::max(static_cast<double>(clock_ == CheckClock::wall ? done->wall_ns : done->processor_ns) / 1e9, kLeast);
}

}  // namespace hinterland::cli
