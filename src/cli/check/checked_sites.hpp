// The hints of a program that runs have passed: counted by the runtime, and named by the files' debug information.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/site_profile_text.hpp"
#include "trace/profile.hpp"

namespace hinterland::cli {

struct CheckedModule {
  std::uint64_t identity = 0, sites = 0;
  std::string path;         // of the file, absolute
  bool is_program = false;  // it is started, not loaded
};

struct CheckedSite {
  std::size_t module = 0;  // index
  site_profile::Site counted;
  trace::Site place;       // function, file and line; "app+0x12ab" where nothing names it
  bool is_static = false;  // always on: nothing is to be chosen

  bool is_worth_it() const { return site_profile::is_worth_it(counted); }
};

struct CheckedSites {
  std::vector<CheckedModule> modules;
  std::vector<CheckedSite> sites;  // that were passed, by module and number

  std::uint64_t sites_in_all() const;  // passed or not
  std::uint64_t misses() const;
  bool all_are_static() const;
};

// Of one profile or of several, of processes of one run: counts of the same site are added. Errors: a text is none of
// a profile.
Result<CheckedSites> sites_in(const std::vector<std::string>& profiles);

// Finds the modules' files, the program's own by `program`, and names the sites. The error names a module whose file
// has other hints than the profile (another build), or is not there.
Status find_files(CheckedSites& checked, const std::string& program);

// A profile with the sites that are on; others that were passed are comments, with what `why_off` says of them.
std::string profile_of(const CheckedSites& checked, const std::vector<bool>& on,
                       const std::function<std::string(std::size_t)>& why_off);

// What a profile of the program with so many files is called for: the file of the module that is started. "" when all
// of them are libraries.
std::string program_of(const CheckedSites& checked);

}  // namespace hinterland::cli
