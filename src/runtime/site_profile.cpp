#include "runtime/site_profile.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "base/plain_file.hpp"
#include "base/raw_call.hpp"

namespace hinterland::hint {
namespace {

constexpr std::string_view kFirstLine = "hinterland sites 1";
constexpr std::uint64_t kPassesPerMiss = 1000;
constexpr std::uint64_t kProfileBytesMax = 64 << 20;

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

const char* variable(OptionId id) {
  const char* value = std::getenv(variable_name(option(id)).c_str());
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

// --- writing
// ---------------------------------------------------------------------------------------------------------
char g_record_path[PATH_MAX];
long g_recorder = 0;

// Lines are collected, so that a write is not one line. Allocates nothing: the program may be ending for want of
// memory.
class Writer {
 public:
  explicit Writer(int file) : file_(file) {}
  template <typename... Arguments>
  void line(const char* format, Arguments... arguments) {
    if (used_ > sizeof buffer_ - kLineMax) flush();
    const int length = std::snprintf(buffer_ + used_, kLineMax, format, arguments...);
    used_ += std::min<std::size_t>(static_cast<std::size_t>(length), kLineMax - 1);
  }
  // 0 or -errno.
  long flush() {
    for (std::size_t done = 0; problem_ == 0 && done < used_;) {
      long result =
          raw::call(SYS_write, file_, reinterpret_cast<long>(buffer_ + done), static_cast<long>(used_ - done));
      if (result > 0)
        done += static_cast<std::size_t>(result);
      else if (result != -EINTR)
        problem_ = result == 0 ? -ENOSPC : result;
    }
    used_ = 0;
    return problem_;
  }

 private:
  static constexpr std::size_t kLineMax = 512;
  int file_;
  long problem_ = 0;
  std::size_t used_ = 0;
  char buffer_[16384];
};

void write_tables(Writer& writer) {
  writer.line("%s\n", kFirstLine.data());
  for (const SiteTable& table : site_tables()) {
    if (table.high.load() == 0) continue;
    writer.line("module %016lx %zu %s\n", table.identity, table.entries.size(), table.path);
    for (std::size_t i = 0; i < table.entries.size(); ++i) {
      const SiteState& site = table.states[i];
      const std::uint64_t passes = site.passes.load(std::memory_order_relaxed);
      if (passes != 0) writer.line("%zu %lu %u\n", i, passes, site.misses.load(std::memory_order_relaxed));
    }
  }
}

void write_record() {
  if (raw::call(SYS_getpid) != g_recorder) return;  // a forked child: its parent writes
  InsideRuntime inside;
  long file = raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(g_record_path),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  long problem = raw::failed(file) ? file : 0;
  if (problem == 0) {
    Writer writer(static_cast<int>(file));
    write_tables(writer);
    problem = writer.flush();
    raw::call(SYS_close, file);
  }
  if (problem != 0)
    log::warning("%s: the profile of hints could not be written: %s", g_record_path,
                 strerrordesc_np(static_cast<int>(-problem)));
}

// The program may change its directory before it ends.
void prepare_record(const char* name) {
  g_recorder = raw::call(SYS_getpid);
  std::string path = name;
  if (std::size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(g_recorder));
  char folder[PATH_MAX];
  if (path[0] != '/' && getcwd(folder, sizeof folder) != nullptr) path = std::string(folder) + "/" + path;
  std::snprintf(g_record_path, sizeof g_record_path, "%s", path.c_str());
  std::atexit(write_record);
}

// --- reading
// ---------------------------------------------------------------------------------------------------------
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

template <typename Number>
std::optional<Number> next_number(std::string_view& line, int base = 10) {
  Number value = 0;
  auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value, base);
  if (problem != std::errc() || end == line.data()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return value;
}

class Reader {
 public:
  Reader(std::uint64_t identity, std::size_t sites, std::string_view name)
      : identity_(identity), sites_(sites), name_(name) {}

  // False where the line is none of a profile.
  bool read(std::string_view line) {
    constexpr std::string_view kModule = "module ";
    if (line.empty() || line.starts_with('#')) return true;
    if (!line.starts_with(kModule)) return read_site(line);
    line.remove_prefix(kModule.size());
    const auto identity = next_number<std::uint64_t>(line, 16);
    const auto sites = next_number<std::uint64_t>(line);
    if (!identity || !sites) return false;
    in_module_ = true;
    ours_ = *identity == identity_ && *sites == sites_;
    if (ours_) {
      result_.match = ProfileMatch::found;
      result_.on.assign(sites_, false);
    } else if (result_.match == ProfileMatch::not_mentioned && file_name(line) == name_) {
      result_.match = ProfileMatch::other_build;
    }
    return true;
  }
  ReadProfile take() { return std::move(result_); }

 private:
  bool read_site(std::string_view line) {
    const auto number = next_number<std::uint64_t>(line);
    const auto passes = next_number<std::uint64_t>(line);
    const auto misses = next_number<std::uint64_t>(line);
    if (!in_module_ || !number || !passes || !misses) return false;
    if (!ours_) return true;
    if (*number >= sites_) return false;
    result_.on[*number] = *misses != 0 && *misses >= *passes / kPassesPerMiss;
    return true;
  }

  std::uint64_t identity_;
  std::size_t sites_;
  std::string_view name_;
  bool in_module_ = false, ours_ = false;
  ReadProfile result_;
};

Result<ReadProfile> profile_in(const std::string& path, const SiteTable& table) {
  Result<std::string> text = read_plain_file(path, "the profile of hints", kProfileBytesMax);
  if (!text) return std::unexpected(text.error());
  return read_profile(*text, table.identity, table.entries.size(), file_name(table.path));
}

// "" when there is none.
std::string profile_path(bool* named) {
  const char* given = variable(OptionId::sites);
  *named = given != nullptr;
  if (given != nullptr) return given;
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof program) return "";
  std::string path = std::string(program, static_cast<std::size_t>(length)) + ".sites";
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

}  // namespace

std::uint64_t identity_of(const SiteTable& table) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) digest = (digest ^ (value >> (8 * i) & 255)) * 0x100000001b3;
  };
  const auto begin = reinterpret_cast<std::uintptr_t>(table.entries.data());
  for (const SiteEntry& entry : table.entries) {
    add(entry.nop_address() - begin);
    add(entry.call_address() - begin);
    add(entry.kind);
  }
  return digest;
}

bool record_of_sites_wanted() {
  static const bool wanted = [] {
    const char* name = variable(OptionId::record_sites);
    if (name != nullptr) prepare_record(name);
    return name != nullptr;
  }();
  return wanted;
}

Result<ReadProfile> read_profile(std::string_view text, std::uint64_t identity, std::size_t sites,
                                 std::string_view name) {
  if (next_line(text) != kFirstLine) {
    Error error = Error::make(0, "it is no profile of hints: its first line is not '%s'", kFirstLine.data());
    return std::unexpected(error.remedy("write one with 'hinterland run --record-sites FILE -- PROGRAM'"));
  }
  Reader reader(identity, sites, name);
  for (std::size_t number = 2; !text.empty(); ++number)
    if (!reader.read(next_line(text)))
      return std::unexpected(Error::make(0, "line %zu of it is none of a profile of hints", number)
                                 .remedy("write it anew with 'hinterland run --record-sites FILE -- PROGRAM'"));
  return reader.take();
}

SiteChoice::SiteChoice(const SiteTable& table) {
  if (record_of_sites_wanted()) return;  // counts all
  bool named = false;
  const std::string path = profile_path(&named);
  if (path.empty()) return;
  Result<ReadProfile> profile = profile_in(path, table);
  if (!profile) {
    log::warning("%s: %s; all hints of %s are on", path.c_str(), profile.error().what(), table.path);
    return;
  }
  if (profile->match == ProfileMatch::other_build)
    log::warning("%s is the profile of another build of %s: all of its hints are on", path.c_str(), table.path);
  if (profile->match != ProfileMatch::found) return;
  all_ = false;
  on_ = std::move(profile->on);
}

}  // namespace hinterland::hint
