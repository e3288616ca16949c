// The places of a trace in the source: which file, which expression of a line touched memory, and what the callers of
// its function gave for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "advice/access.hpp"
#include "advice/caller.hpp"
#include "advice/fault_sites.hpp"
#include "advice/hint_text.hpp"
#include "advice/source_tree.hpp"
#include "trace/symbols.hpp"

namespace hinterland::trace {

// A place of the trace with its expression in the source.
struct Located {
  std::string path;
  int line = 0;
  Dialect dialect = Dialect::c;
  const SourceText* source = nullptr;
  Chosen chosen;
  std::size_t indexes_from = 0;  // of chosen.accesses, from here on: what the others' addresses load; 0: none are
};

class Locator {
 public:
  // Keeps references.
  Locator(Symbols& symbols, SourceTree& sources) : symbols_(symbols), sources_(sources) {}

  Located look_up(const FaultSite& site, bool write);
  std::optional<GivenBy> given_by_caller(const FaultSite& site, const Located& located, const Access& access);

  // Sentences: programs whose debug information lacks what the advice could use.
  const std::vector<std::string>& remarks() const { return remarks_; }

  static void add_other_side(Located& located);
  static void add_index(Located& located);

 private:
  Located look_at(const FaultSite& site, const std::string& file, int line, int column, bool write);
  void add_call(const FaultSite& site, int column, Located& located);
  void look_at_options(const Unit& unit, const std::string& module);
  std::string path_of(std::uint64_t code_address, const std::string& file);

  Symbols& symbols_;
  SourceTree& sources_;
  std::vector<std::string> remarks_;
};

}  // namespace hinterland::trace
