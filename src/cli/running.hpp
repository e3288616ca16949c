// Finds the statistics pages of programs (base/stats.hpp) and maps them.
#pragma once

#include <sys/types.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/stats.hpp"
#include "cli/figures_folder.hpp"

namespace hinterland::cli {

// A text of a page, which whoever owns the page may have filled with anything: no byte beyond the text, and none that
// a terminal would obey.
template <std::size_t N>
std::string text_of(const char (&text)[N]) {
  std::string copy(text, ::strnlen(text, N));
  for (char& letter : copy)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  return copy;
}

// One page. Reading never blocks and never slows the program. Move-only.
class StatView {
 public:
  // Read-write is for tune: the page itself, shared. Else a copy of it as it is now, since its owner could cut the
  // file short under a reader. Refuses files that are too short, not ours, or of another version.
  static Result<StatView> open(const FiguresFolder& folder, const std::string& name, bool writable);
  StatPage* operator->() const { return page_.get(); }
  StatPage& operator*() const { return *page_; }
  // The process that owns the page lives (its PID was not taken by another since), in our PID and time namespaces: of
  // others one cannot tell.
  bool is_alive() const;

 private:
  struct Unmap {
    void operator()(StatPage* page) const;
  };
  std::unique_ptr<StatPage, Unmap> page_;
};

// Below a run's private directory: where its recorder and its programs make the rings of `trace` (trace/ring.hpp).
inline constexpr const char* kRingsName = "rings";

// Where running programs may have their figures: what --stat-dir says; else the usual folder, and those that are
// usual where XDG_RUNTIME_DIR is set otherwise (a program that was started by cron, watched from a terminal).
std::vector<std::string> searched_directories(const std::string& stat_dir);
// Where a program that is started now has them: the first of those.
std::string chosen_directory(const std::string& stat_dir);

// Pages of live programs in these directories and in the private directories of `run --report` below them, by PID.
// Files of dead processes are removed, unless they wait for the `run` that will report them; and so are rings that
// nobody reads. What belongs to other PID or time namespaces (a container with our /dev/shm) is left alone. That
// there is no such directory is no error, and what is wrong with one is said of the first only.
Result<std::vector<StatView>> find_running(const std::vector<std::string>& directories);

// The page of one process. Errors tell apart: no such process, not ours, not under Hinterland.
Result<StatView> find_running(const std::vector<std::string>& directories, pid_t pid, bool writable);

// Every readable page in one directory, dead ones included, in order of their start: for the report.
std::vector<StatView> pages_in(const std::string& directory);

// The private directory of one `run` below `directory`: made 0700; and removed with what dead processes left there.
Result<std::string> make_run_directory(const std::string& directory);
void remove_run_directory(const std::string& run_directory);

}  // namespace hinterland::cli
