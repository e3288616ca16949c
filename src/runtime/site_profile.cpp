#include "runtime/site_profile.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "base/plain_file.hpp"
#include "base/raw_call.hpp"
#include "base/site_profile_text.hpp"

namespace hinterland::hint {
namespace {

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
  writer.line("%s\n", site_profile::kFirstLine.data());
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
Result<ReadProfile> profile_in(const std::string& path, const SiteTable& table) {
  Result<std::string> text = read_plain_file(path, "the profile of hints", site_profile::kBytesMax);
  if (!text) return std::unexpected(text.error());
  return read_profile(*text, table.identity, table.entries.size(), file_name(table.path));
}

// Those that may be read where none is named: the newest first, because whoever wrote it knew of the other.
std::vector<std::string> usual_profiles() {
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof program) return {};
  const std::string path(program, static_cast<std::size_t>(length));
  struct Found {
    std::string path;
    timespec written;
  };
  std::vector<Found> found;
  for (std::string& each : std::array{site_profile::path_beside(path), site_profile::path_in_cache(path)}) {
    struct stat status{};
    if (!each.empty() && access(each.c_str(), R_OK) == 0 && stat(each.c_str(), &status) == 0)
      found.push_back({std::move(each), status.st_mtim});
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) {
    return std::pair(a.written.tv_sec, a.written.tv_nsec) > std::pair(b.written.tv_sec, b.written.tv_nsec);
  });
  std::vector<std::string> paths;
  for (Found& each : found) paths.push_back(std::move(each.path));
  return paths;
}

std::vector<std::string> profile_paths() {
  const char* named = variable(OptionId::sites);
  return named != nullptr ? std::vector<std::string>{named} : usual_profiles();
}

}  // namespace

std::uint64_t identity_of(const SiteTable& table) {
  site_profile::Identity identity;
  const auto begin = reinterpret_cast<std::uintptr_t>(table.entries.data());
  for (const SiteEntry& entry : table.entries)
    identity.add(entry.nop_address() - begin, entry.call_address() - begin, entry.kind);
  return identity.value();
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
  ReadProfile result;
  bool ours = false;
  Status read = site_profile::read(
      text,
      [&](const site_profile::Module& module) {
        ours = module.identity == identity && module.sites == sites;
        if (ours) {
          result.match = ProfileMatch::found;
          result.on.assign(sites, false);
        } else if (result.match == ProfileMatch::not_mentioned && file_name(module.path) == name) {
          result.match = ProfileMatch::other_build;
        }
      },
      [&](const site_profile::Site& site) {
        if (ours) result.on[site.number] = site_profile::is_worth_it(site);
      });
  if (!read) return std::unexpected(read.error());
  return result;
}

SiteChoice::SiteChoice(const SiteTable& table) {
  if (record_of_sites_wanted()) return;  // counts all
  std::string problem;                   // with the first of them
  for (const std::string& path : profile_paths()) {
    Result<ReadProfile> profile = profile_in(path, table);
    if (profile && profile->match == ProfileMatch::found) {
      all_ = false;
      on_ = std::move(profile->on);
      return;
    }
    if (!problem.empty()) continue;
    if (!profile)
      problem = path + ": " + profile.error().what() + "; all hints of " + table.path + " are on";
    else if (profile->match == ProfileMatch::other_build)
      problem = path + " is the profile of another build of " + table.path + ": all of its hints are on";
  }
  if (!problem.empty()) log::warning("%s", problem.c_str());
}

}  // namespace hinterland::hint
