// The text of a profile of hints by the compiler, which the runtime writes and reads (runtime/site_profile.hpp), and
// `hinterland check` as well:
//
//     hinterland sites 1
//     module 3f0c51ab... 182 /usr/bin/app      identity of the table, how many sites, where it was
//     17 12000000 5310                         number of the site, passes, and how often the page was missing
//
// Lines that begin with # say something to people. The number of a site is its place in the module's table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::site_profile {

inline constexpr std::string_view kFirstLine = "hinterland sites 1";
inline constexpr std::uint64_t kBytesMax = 64 << 20;  // of a file that is read

struct Module {
  std::uint64_t identity = 0;  // see Identity
  std::uint64_t sites = 0;     // in its table
  std::string_view path;       // as the loader named it: may be relative
};
struct Site {
  std::uint64_t number = 0, passes = 0, misses = 0;
};

// A hint is worth it when its page was missing at least once in a thousand passes: a miss costs some thousand times
// what a pass does.
inline bool is_worth_it(const Site& site) {
  constexpr std::uint64_t kPassesPerMiss = 1000;
  return site.misses != 0 && site.misses >= site.passes / kPassesPerMiss;
}

// Tells of each module, and then of its sites, in the order of the text. The error says which line is none of a
// profile; what came before it was told. The module's path is part of the text.
Status read(std::string_view text, const std::function<void(const Module&)>& module,
            const std::function<void(const Site&)>& site);

// Of a table: a digest of where its sites lie and what kind they are. A profile of another build is noticed by it,
// and a build with the same sites at the same places has the same, whether or not the linker gave it a build id.
// Distances are from the table's beginning.
class Identity {
 public:
  void add(std::uint64_t nop, std::uint64_t call, std::uint64_t kind);
  std::uint64_t value() const { return digest_; }

 private:
  void add(std::uint64_t value);
  std::uint64_t digest_ = 0xcbf29ce484222325;  // FNV-1a
};

// Where a program's profile lies when nothing names one: beside it, or, where that folder may not be written, in the
// user's cache. Both for the program's path without links, as /proc/PID/exe has it. The second is "" without
// XDG_CACHE_HOME and HOME.
std::string path_beside(const std::string& program);
std::string path_in_cache(const std::string& program);

}  // namespace hinterland::site_profile
