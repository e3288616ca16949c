// What `run` says at the end: the JSON report, and the summary for people.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/figures.hpp"

namespace hinterland::cli {

// How the program ended, as waitpid() and getrusage() tell.
struct Outcome {
  int wait_status = 0;
  std::uint64_t wall_ns = 0;
  rusage usage{};  // of the program and all children it waited for
};

struct RunFacts {
  std::string program;  // as given, without its arguments, which may hold secrets
  std::uint64_t local_bytes = 0;
  std::string far_url;
  std::string policy;
  bool all_addresses = false;  // not the window alone
};

Json report_json(const RunFacts& facts, const Outcome& outcome, const std::vector<StatView>& pages);
std::string summary_text(const RunFacts& facts, const Outcome& outcome, const std::vector<StatView>& pages);

// The file is opened before the program starts, so that a report that cannot be written is known then, and so
// that nothing is overwritten without --force.
class ReportFile {
 public:
  // `path` "" for none, "-" for standard output.
  static Result<ReportFile> open(const std::string& path, bool overwrite);
  ReportFile(ReportFile&& other) noexcept;
  ReportFile& operator=(ReportFile&&) = delete;
  ~ReportFile();  // removes a file that was made and not written
  bool is_wanted() const { return descriptor_ >= 0; }
  Status write(const Json& report);

 private:
  ReportFile() = default;
  std::string path_;
  int descriptor_ = -1;
  bool made_ = false;
};

}  // namespace hinterland::cli
