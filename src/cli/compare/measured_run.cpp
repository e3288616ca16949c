#include "cli/compare/measured_run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/absolute_path.hpp"
#include "cli/compare/swap_limit.hpp"
#include "cli/run_once.hpp"
#include "cli/running.hpp"
#include "cli/supervise.hpp"
#include "far/url.hpp"

namespace hinterland::cli {
namespace {

constexpr const char* kInput = "input";

std::string temporary_folder() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen != nullptr && chosen[0] != '\0' ? chosen : "/tmp";
}

// Standard streams of this process, as the program is to have them, until the object goes.
class Redirected {
 public:
  Redirected(const std::string& input, const std::string& output, bool loud) {
    std::fflush(stdout);
    take(STDIN_FILENO, input, O_RDONLY);
    take(STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC);
    if (!loud) take(STDERR_FILENO, "/dev/null", O_WRONLY);
  }
  ~Redirected() {
    for (int stream = 0; stream < 3; ++stream) {
      if (before_[stream] < 0) continue;
      dup2(before_[stream], stream);
      close(before_[stream]);
    }
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  bool is_good() const { return good_; }

 private:
  void take(int stream, const std::string& path, int flags) {
    int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
    before_[stream] = fcntl(stream, F_DUPFD_CLOEXEC, 3);
    good_ = good_ && file >= 0 && dup2(file, stream) == stream;
    if (file >= 0) close(file);
  }
  int before_[3] = {-1, -1, -1};
  bool good_ = true;
};

Error cannot_be_kept(const std::string& folder, int problem) {
  Error error = Error::make(problem, "what the program prints cannot be kept in %s", folder.c_str());
  return error.remedy("set TMPDIR to a folder with room");
}

std::uint64_t ns_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
}

bool keep_input(const std::string& path) {
  struct stat input{};
  if (fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode))
    std::fputs("hinterland: reading the program's standard input to its end (< /dev/null if it needs none)\n",
               stderr);
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  char buffer[65536];
  ssize_t length = 0;
  bool good = true;
  bool is_terminal = isatty(STDIN_FILENO) != 0;
  while (!is_terminal && good && (length = read(STDIN_FILENO, buffer, sizeof buffer)) != 0) {
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EBADF) break;  // closed: nothing to read
    good = length > 0 && write(file, buffer, static_cast<std::size_t>(length)) == length;
  }
  close(file);
  return good;
}

}  // namespace

std::string Way::name() const {
  if (kind == Kind::native) return "native";
  std::string share = percent == 0 ? "" : " " + std::to_string(percent) + " %,";
  return (kind == Kind::swap ? std::string("Linux swap") : url) + share + " " + rounded_size_text(local_bytes);
}

Result<RunFiles> RunFiles::make() {
  std::string folder = temporary_folder() + "/hinterland-compare-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return std::unexpected(cannot_be_kept(temporary_folder(), errno));
  RunFiles files;
  files.folder_ = folder;
  if (!keep_input(files.path(kInput))) return std::unexpected(cannot_be_kept(folder, errno));
  return files;
}

RunFiles::RunFiles(RunFiles&& other) noexcept : folder_(std::exchange(other.folder_, "")) {}

RunFiles::~RunFiles() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Runner::Runner(CommandLine& line, const std::string& path, const std::string& library, const RunFiles& files)
    : line_(line), path_(path), library_(library), files_(files) {
  for (char** entry = environ; *entry != nullptr; ++entry) environment_.emplace_back(*entry);
}

Runner::~Runner() { clearenv(); }  // it has pointers to our texts

void Runner::restore_environment() {
  clearenv();
  for (std::string& entry : environment_) putenv(entry.data());
}

void Runner::set_environment(const Way& way, const std::string& figures) {
  line_.settle_for(OptionId::local, way.local_bytes);
  export_settings(line_, library_);
  setenv("HINTERLAND_FAR", far::url_from(current_folder(), way.url).c_str(), 1);
  setenv("HINTERLAND_STAT_DIR", figures.c_str(), 1);
  setenv("HINTERLAND_STAT_KEEP", "1", 1);
  for (const auto& [name, value] : way.variables) setenv(name.c_str(), value.c_str(), 1);
}

Result<Measured> Runner::run(const Way& way, const std::string& output_name, bool loud) {
  restore_environment();
  Measured measured;
  measured.output_path = files_.path(output_name);
  std::optional<SwapLimit> limit;
  if (way.kind == Way::Kind::swap) {
    Result<SwapLimit> made = SwapLimit::make(way.local_bytes, way.swap_bytes);
    if (!made) return std::unexpected(made.error());
    limit.emplace(std::move(*made));
  }
  std::string figures;
  if (way.kind == Way::Kind::far) {
    Result<std::string> folder = make_run_directory(chosen_directory(line_.text(OptionId::stat_dir)));
    if (!folder) return std::unexpected(folder.error());
    figures = *folder;
    set_environment(way, figures);
  }
  Result<Outcome> outcome = [&]() -> Result<Outcome> {
    Redirected streams(files_.path(kInput), measured.output_path, loud);
    if (!streams.is_good()) return std::unexpected(cannot_be_kept(measured.output_path, errno));
    return supervise(path_, line_.rest(), [&](pid_t child) { return limit ? limit->hold(child) : Status(); });
  }();
  Figures all;
  if (!figures.empty()) {
    for (const StatView& page : pages_in(figures)) all.add(*page);
    remove_run_directory(figures);
  }
  if (!outcome) return std::unexpected(outcome.error());
  measured.wait_status = outcome->wait_status;
  measured.wall_ns = outcome->wall_ns;
  measured.processor_ns = ns_of(outcome->usage.ru_utime) + ns_of(outcome->usage.ru_stime);
  measured.peak_bytes = limit ? limit->peak_bytes() : static_cast<std::uint64_t>(outcome->usage.ru_maxrss) * kKiB;
  measured.pages_in = limit ? limit->pages_in() : all[Counter::pages_in];
  measured.waited_ns = all.fault_latency.sum_ns();
  if (limit) measured.kills_diverted = limit->kills_diverted();
  return measured;
}

std::uint64_t first_difference(const std::string& one, const std::string& other) {
  std::ifstream left(one, std::ios::binary), right(other, std::ios::binary);
  std::vector<char> a(1 << 16), b(1 << 16);
  std::uint64_t line = 1;
  for (;;) {
    auto read = [](std::ifstream& file, std::vector<char>& block) {
      file.read(block.data(), static_cast<std::streamsize>(block.size()));
      return static_cast<std::ptrdiff_t>(file.gcount());
    };
    const std::ptrdiff_t in_a = read(left, a), in_b = read(right, b);
    const std::ptrdiff_t same =
        std::mismatch(a.begin(), a.begin() + in_a, b.begin(), b.begin() + in_b).first - a.begin();
    line += static_cast<std::uint64_t>(std::count(a.begin(), a.begin() + same, '\n'));
    if (same < in_a || same < in_b) return line;
    if (in_a == 0) return 0;
  }
}

}  // namespace hinterland::cli
