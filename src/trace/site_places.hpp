// Which hints the compiler put at the places of a traced program, by debug lines; and what the trace says of each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "trace/profile.hpp"
#include "trace/site_table.hpp"

namespace hinterland::trace {

struct PlacedSite {
  std::uint64_t number = 0;  // in its module's table
  TableEntry entry;
};

// Reads the files that ran, where they are still the same; those without hints, and those that are not there, are
// left out. One thread.
class SitePlaces {
 public:
  SitePlaces() = default;  // of nothing
  // `folder`: as for Symbols.
  explicit SitePlaces(const TraceFile& trace, const std::string& folder = {});

  // Of any file that ran.
  bool empty() const { return modules_.empty(); }
  // The file has hints, here or elsewhere: so at() says something about its places.
  bool has_hints(const std::string& module) const { return modules_.contains(module); }
  // Of the line; of a place without a line those of its function. By number; none where there are none.
  const std::vector<PlacedSite>& at(const Site& place) const;

 private:
  friend class SiteCounts;
  struct Lines {
    SiteTableOfFile table;
    std::map<std::pair<std::string, int>, std::vector<PlacedSite>> by_line;
    std::map<std::string, std::vector<PlacedSite>> by_function;
  };
  std::map<std::string, Lines> modules_;  // by path
};

// What the compiler did there: "hinted in strips of 64 pages".
const char* text_of(SiteForm form);

// A profile of hints (base/site_profile_text.hpp) out of a trace: a site is on if pages were missing at its line, by
// faults or by hints, others are off. How often it was passed a trace does not tell; it stands as often as pages were
// missing. Errors: nothing that ran has hints, or it is another file by now.
Result<std::string> site_profile_of(const TraceFile& trace, Symbols& symbols, const std::string& folder = {});

}  // namespace hinterland::trace
