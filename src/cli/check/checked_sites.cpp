#include "cli/check/checked_sites.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "cli/absolute_path.hpp"
#include "trace/site_table.hpp"

namespace hinterland::cli {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// As /proc/PID/exe would have it.
std::string without_links(const std::string& path) {
  std::error_code problem;
  const std::filesystem::path whole = std::filesystem::canonical(path, problem);
  return problem ? absolute_path(path) : whole.string();
}

// Of the files that may be the module's, the one with its hints.
Status find_file(CheckedModule& module, const std::string& program) {
  bool other_build = false;
  for (const std::string& path : {without_links(module.path), without_links(program)}) {
    Result<trace::SiteTableOfFile> table = trace::read_site_table(path);
    if (!table) continue;
    const bool same = table->identity == module.identity && table->entries.size() == module.sites;
    other_build = other_build || name_of(path) == name_of(module.path);
    if (!same) continue;
    module.path = path;
    module.is_program = table->is_program;
    return {};
  }
  if (other_build)
    return std::unexpected(Error::make(0, "it is the profile of another build of %s", module.path.c_str()));
  return std::unexpected(Error::make(ENOENT, "it is the profile of %s", module.path.c_str()));
}

// A program with hints that the profile does not know is another build, wherever the other one lies. (One without may
// start the one with them.)
Status check_build(const CheckedSites& checked, const std::string& program) {
  const Result<trace::SiteTableOfFile> table = trace::read_site_table(program);
  if (!table || table->entries.empty()) return {};
  for (const CheckedModule& module : checked.modules)
    if (module.identity == table->identity) return {};
  return std::unexpected(Error::make(0, "it is the profile of another build of %s", program.c_str()));
}

void name_sites(CheckedSites& checked, std::size_t module) {
  const std::string& path = checked.modules[module].path;
  const Result<trace::SiteTableOfFile> table = trace::read_site_table(path);
  if (!table) return;
  trace::Symbols symbols(trace::modules_at_own_addresses(path));
  for (CheckedSite& site : checked.sites) {
    if (site.module != module || site.counted.number >= table->entries.size()) continue;
    const trace::Place place = trace::place_of({{table->entries[site.counted.number].nop}, true}, symbols);
    site.is_static = table->entries[site.counted.number].is_static;
    site.place.function = place.frame->function;
    site.place.file = place.frame->file;
    site.place.line = place.frame->line;
    site.place.module = path;
  }
}

}  // namespace

std::uint64_t CheckedSites::sites_in_all() const {
  std::uint64_t sum = 0;
  for (const CheckedModule& module : modules) sum += module.sites;
  return sum;
}

std::uint64_t CheckedSites::misses() const {
  std::uint64_t sum = 0;
  for (const CheckedSite& site : sites) sum += site.counted.misses;
  return sum;
}

bool CheckedSites::all_are_static() const { return std::ranges::all_of(sites, &CheckedSite::is_static); }

Result<CheckedSites> sites_in(const std::vector<std::string>& profiles) {
  CheckedSites checked;
  std::map<std::pair<std::size_t, std::uint64_t>, site_profile::Site> counted;  // by module and number
  for (const std::string& text : profiles) {
    std::size_t current = 0;
    Status read = site_profile::read(
        text,
        [&](const site_profile::Module& module) {
          auto known = std::ranges::find_if(checked.modules, [&](const CheckedModule& each) {
            return each.identity == module.identity && each.sites == module.sites;
          });
          current = static_cast<std::size_t>(known - checked.modules.begin());
          if (known == checked.modules.end())
            checked.modules.push_back({module.identity, module.sites, std::string(module.path), false});
        },
        [&](const site_profile::Site& site) {
          site_profile::Site& sum = counted[{current, site.number}];
          sum.number = site.number;
          sum.passes += site.passes;
          sum.misses += site.misses;
        });
    if (!read) return std::unexpected(read.error());
  }
  for (const auto& [key, site] : counted) checked.sites.push_back({key.first, site, {}, false});
  return checked;
}

Status find_files(CheckedSites& checked, const std::string& program) {
  if (Status build = check_build(checked, program); !build) return build;
  for (std::size_t i = 0; i < checked.modules.size(); ++i) {
    if (Status found = find_file(checked.modules[i], program); !found) return found;
    name_sites(checked, i);
  }
  return {};
}

std::string profile_of(const CheckedSites& checked, const std::vector<bool>& on,
                       const std::function<std::string(std::size_t)>& why_off) {
  std::string text = std::string(site_profile::kFirstLine) + "\n";
  char line[128];
  for (std::size_t module = 0; module < checked.modules.size(); ++module) {
    const CheckedModule& each = checked.modules[module];
    std::snprintf(line, sizeof line, "module %016llx %llu ", static_cast<unsigned long long>(each.identity),
                  static_cast<unsigned long long>(each.sites));
    text += line + each.path + "\n";
    for (std::size_t i = 0; i < checked.sites.size(); ++i) {
      const CheckedSite& site = checked.sites[i];
      if (site.module != module) continue;
      std::snprintf(line, sizeof line, "%s%llu %llu %llu", on[i] ? "" : "# ",
                    static_cast<unsigned long long>(site.counted.number),
                    static_cast<unsigned long long>(site.counted.passes),
                    static_cast<unsigned long long>(site.counted.misses));
      text += line + (on[i] ? "" : " " + why_off(i)) + "\n";
    }
  }
  return text;
}

std::string program_of(const CheckedSites& checked) {
  std::vector<std::uint64_t> passes(checked.modules.size());
  for (const CheckedSite& site : checked.sites) passes[site.module] += site.counted.passes;
  const CheckedModule* found = nullptr;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (!checked.modules[i].is_program || (found != nullptr && passes[i] <= most)) continue;
    found = &checked.modules[i];
    most = passes[i];
  }
  return found != nullptr ? found->path : "";
}

}  // namespace hinterland::cli
