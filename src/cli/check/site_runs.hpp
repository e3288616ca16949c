// Runs of a program for `hinterland check`: with some of its hints on, timed; and one that counts their passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/compare/measured_run.hpp"

namespace hinterland::cli {

enum class CheckClock : std::uint8_t { wall, processor };  // in the order of --clock's choices

class SiteRuns {
 public:
  // Borrows runner and files. `way`: how it runs far.
  SiteRuns(Runner& runner, const RunFiles& files, Way way, CheckClock clock);

  // Runs are said on stderr from now on as [1/COUNT], [2/COUNT], ...
  void expect(std::size_t count) { done_ = 0, total_ = count; }
  // All hints count: their profiles, of each process that wrote one. Errors: it could not be run, or a signal ended
  // it.
  Result<std::vector<std::string>> count();
  // Seconds by the clock, more than 0, with the hints on that the profile says. `what` is said on stderr. Errors: it
  // could not be run, or ended otherwise than in the run before.
  Result<double> seconds(const std::string& profile, const std::string& what);
  // Of the last run that was timed.
  std::uint64_t pages_in() const { return pages_in_; }

 private:
  Result<Measured> run(const Way& way, const std::string& what);

  Runner& runner_;
  const RunFiles& files_;
  Way way_;
  CheckClock clock_;
  std::size_t done_ = 0, total_ = 0;
  std::uint64_t pages_in_ = 0;
  std::optional<int> wait_status_;  // of the first run
};

}  // namespace hinterland::cli
