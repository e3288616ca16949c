#include "object/block_profile.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "base/plain_file.hpp"
#include "base/raw_call.hpp"
#include "base/site_profile_text.hpp"
#include "base/units.hpp"

namespace hinterland::object {
namespace {

constexpr std::string_view kFirstLine = "hinterland objects 1";
constexpr std::uint64_t kFileBytesMax = 1 << 20;
// An object that is brought costs about half of what a page does for which a hint stands (ADR 0064, chains: 0.09
// against 0.20 s). And where hardly one in a hundred blocks is ever brought, guards gain nothing.
constexpr std::uint64_t kObjectsAPage = 2, kBlocksABrought = 100, kBroughtOfAll = 100;

struct Line {
  std::uint64_t bytes, made, brought, pages;
};

bool read_line(std::string_view text, Line& line) {
  const char *at = text.data(), *end = at + text.size();
  for (std::uint64_t* value : {&line.bytes, &line.made, &line.brought, &line.pages}) {
    while (at != end && *at == ' ') ++at;
    const auto [next, problem] = std::from_chars(at, end, *value);
    if (problem != std::errc()) return false;
    at = next;
  }
  return at == end;
}

// `all`: how often blocks of all sizes were brought. What is little of it is not worth memory of its own.
bool is_worth_it(const Line& line, std::uint64_t all) {
  return line.brought >= line.made / kBlocksABrought && line.brought != 0 && line.brought >= all / kBroughtOfAll &&
         line.pages >= line.brought / kObjectsAPage;
}

const char* variable(OptionId id) {
  const char* value = std::getenv(variable_name(option(id)).c_str());
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

// --- the process's
constinit BlockProfile g_profile;
char g_record_path[PATH_MAX];
long g_recorder = 0;

long write_all(std::string_view text) {
  long file = raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(g_record_path),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (raw::failed(file)) return file;
  long problem = 0;
  while (problem == 0 && !text.empty()) {
    const long done = raw::call(SYS_write, file, reinterpret_cast<long>(text.data()), static_cast<long>(text.size()));
    if (done > 0)
      text.remove_prefix(static_cast<std::size_t>(done));
    else if (done != -EINTR)
      problem = done == 0 ? -ENOSPC : done;
  }
  raw::call(SYS_close, file);
  return problem;
}

void write_record() {
  if (raw::call(SYS_getpid) != g_recorder) return;  // a forked child: its parent writes
  InsideRuntime inside;
  if (const long problem = write_all(g_profile.text()); problem != 0)
    log::warning("%s: the profile of objects could not be written: %s", g_record_path,
                 strerrordesc_np(static_cast<int>(-problem)));
}

// The program may change its directory before it ends.
void prepare_record(const char* name) {
  g_recorder = raw::call(SYS_getpid);
  std::string path = name;
  if (const std::size_t at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(g_recorder));
  char folder[PATH_MAX];
  if (path[0] != '/' && getcwd(folder, sizeof folder) != nullptr) path = std::string(folder) + "/" + path;
  std::snprintf(g_record_path, sizeof g_record_path, "%s.objects", path.c_str());
  std::atexit(write_record);
}

std::string profile_path() {
  if (const char* named = variable(OptionId::sites)) return std::string(named) + ".objects";
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof program) return "";
  return site_profile::path_beside(std::string(program, static_cast<std::size_t>(length))) + ".objects";
}

}  // namespace

void BlockProfile::begin_counting(std::size_t pages) {
  recent_count_ = std::max<std::size_t>(pages, 1);
  recent_ = std::make_unique<std::atomic<std::uintptr_t>[]>(recent_count_);
}

void BlockProfile::brought(std::size_t bytes, std::uintptr_t address) {
  add(brought_, bytes);
  const std::uintptr_t page = address / kPageSize;
  std::atomic<std::uintptr_t>& last = recent_[page * 0x9e3779b97f4a7c15 % recent_count_];
  if (last.exchange(page, std::memory_order_relaxed) != page) add(pages_, bytes);
}

std::string BlockProfile::text() const {
  std::string text(kFirstLine);
  std::uint64_t all = 0;
  for (const auto& brought : brought_) all += brought.load(std::memory_order_relaxed);
  text += "\n# bytes, made, brought, and how often the page would have been\n";
  for (std::size_t unit = 0; unit < kSizes; ++unit) {
    const Line line{unit * kUnit, made_[unit].load(std::memory_order_relaxed),
                    brought_[unit].load(std::memory_order_relaxed), pages_[unit].load(std::memory_order_relaxed)};
    if (line.made == 0) continue;
    text += std::to_string(line.bytes) + " " + std::to_string(line.made) + " " + std::to_string(line.brought) + " " +
            std::to_string(line.pages) + (is_worth_it(line, all) ? "\n" : "\n# these stay on pages\n");
  }
  return text;
}

Status BlockProfile::choose(std::string_view text) {
  std::array<Line, kSizes> lines{};
  std::uint64_t all = 0;
  for (std::size_t number = 1; number == 1 || !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Line line{};
    if (number == 1 ? word == kFirstLine : word.empty() || word.starts_with('#')) continue;
    if (number == 1 || !read_line(word, line) || line.bytes % kUnit != 0 || line.bytes / kUnit >= kSizes)
      return std::unexpected(Error::make(0, "line %zu of it is none of a profile of objects", number)
                                 .remedy("write it anew with 'hinterland run --record-sites FILE -- PROGRAM'"));
    lines[line.bytes / kUnit] = line;
    all += line.brought;
  }
  std::ranges::transform(lines, pays_.begin(), [all](const Line& line) { return is_worth_it(line, all); });
  chosen_ = true;
  return {};
}

BlockProfile& block_profile() { return g_profile; }

bool choose_block_profile() {
  const std::string path = variable(OptionId::record_sites) == nullptr ? profile_path() : "";
  if (path.empty() || access(path.c_str(), R_OK) != 0) return true;
  Result<std::string> text = read_plain_file(path, "the profile of objects", kFileBytesMax);
  const Status chosen = text ? g_profile.choose(*text) : Status(std::unexpected(text.error()));
  if (!chosen)
    log::warning("%s: %s; blocks of all sizes are objects", path.c_str(), chosen.error().what());
  else
    log::info("%s says which sizes of blocks are objects%s", path.c_str(), g_profile.any_pays() ? "" : ": none");
  return g_profile.any_pays();
}

void begin_block_counts(std::uint64_t local_bytes) {
  const char* name = variable(OptionId::record_sites);
  if (name == nullptr) return;
  g_profile.begin_counting(local_bytes / kPageSize);
  prepare_record(name);
}

}  // namespace hinterland::object
