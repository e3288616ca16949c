#include "advice/locate.hpp"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>

#include "advice/expression_types.hpp"

namespace hinterland::trace {
namespace {

// Nothing: a language that hints are not written in.
std::optional<Dialect> dialect_of(const Unit& unit) {
  constexpr int kC17 = 0x2c, kCxx17 = 0x2a, kCxx20 = 0x2b;  // younger than Debian 12's dwarf.h
  switch (unit.language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case kC17:
      return Dialect::c;
    case kCxx20:
      return Dialect::cxx20;
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case kCxx17:
      break;
    default:
      return {};
  }
  // GCC says no more than C++14 there, but in its name "GNU C++20 12.2.0 -mtune=generic ...".
  std::size_t at = unit.producer.find("C++");
  int year = at != std::string::npos ? std::atoi(unit.producer.c_str() + at + 3) : 0;
  return year >= 20 && year < 90 ? Dialect::cxx20 : Dialect::cxx;
}

}  // namespace

// Where a function was inlined that hides its memory (it got a value, or a lambda's argument), the line that called
// it is the next best: there the hint is as near.
Located Locator::look_up(const FaultSite& site, bool write) {
  Located located = look_at(site, site.file, site.line, site.column, write);
  if (!located.chosen.accesses.empty()) return located;
  bool inlined = false, below = true;
  for (const Frame& frame : symbols_.frames_at(site.code_address)) {
    below = below && !(frame.file == site.file && frame.line == site.line && frame.column == site.column);
    if (!below && inlined && !frame.library) {
      Located caller = look_at(site, frame.file, frame.line, frame.column, write);
      if (!caller.chosen.accesses.empty()) return caller;
    }
    inlined = !below && frame.inlined;
    if (!below && !inlined) break;
  }
  return located;
}

Located Locator::look_at(const FaultSite& site, const std::string& file, int line, int column, bool write) {
  Located located;
  located.line = line;
  located.chosen.why = "no line is known";
  if (file.empty() || line == 0) return located;
  Unit unit = symbols_.unit_at(site.code_address);
  located.path = path_of(site.code_address, file);
  look_at_options(unit, site.module);
  located.source = sources_.read(located.path);
  located.chosen.why = "its source file is not there";
  if (located.source == nullptr) return located;
  sources_.compare(located.path, site.module);
  std::optional<Dialect> dialect = dialect_of(unit);
  located.chosen.why = "hints are written in C and C++";
  if (!dialect) return located;
  located.dialect = *dialect;
  located.chosen = choose_access(*located.source, line, column, write);
  if (!located.chosen.accesses.empty()) return located;
  // Nothing in the text says that memory is touched: references, and macros of a pointer. Debug information knows.
  auto names = [&](std::string_view name) {
    return kind_of_name(symbols_.module_of(site.code_address), site.code_address, name);
  };
  located.chosen = choose_access(*located.source, line, column, write, names);
  if (located.chosen.accesses.empty() && located.dialect != Dialect::c) add_call(site, column, located);
  return located;
}

// memcpy() and its kin read one argument and write another: where both kinds fault, both are hinted.
void Locator::add_other_side(Located& located) {
  Chosen& chosen = located.chosen;
  if (chosen.accesses.size() != 1 || chosen.accesses[0].size.empty()) return;
  const Access known = chosen.accesses[0];
  for (Access& other : accesses_on(*located.source, located.line))
    if (other.sign == known.sign && other.writes != known.writes) chosen.accesses.push_back(std::move(other));
  if (chosen.accesses.size() == 1) return;
  chosen.sure = false;
  chosen.why = "it reads one and writes the other, and both fault";
}

// Of `a[*p]`, the load of *p stands at the column of a[] where that is a class's operator; and what goes through
// memory in order is rather the index.
void Locator::add_index(Located& located) {
  Chosen& chosen = located.chosen;
  bool doubtful = chosen.accesses.size() == 1 && chosen.accesses[0].loads > 0 && !chosen.accesses[0].whole_object;
  if (!doubtful) return;
  for (Access& load : loads_of(*located.source, located.line, chosen.accesses[0]))
    chosen.accesses.push_back(std::move(load));
  chosen.sure = chosen.accesses.size() == 1;
  if (chosen.sure) return;
  located.indexes_from = 1;
  chosen.why = "the memory that is used in order may be that of the index";
}

// `number = bucket(hash)`, where bucket() returns a reference: compilers put the load at the call's last bracket.
void Locator::add_call(const FaultSite& site, int column, Located& located) {
  const SourceText& source = *located.source;
  if (located.line > source.lines()) return;
  for (std::size_t i = source.first_token_of(located.line); i < source.first_token_of(located.line + 1); ++i) {
    std::size_t open =
        source.is(i, ")") && source.tokens()[i].column == column ? source.partner(i) : SourceText::kNone;
    if (open == SourceText::kNone || open < 2 || source.tokens()[open - 1].kind != TokenKind::word) continue;
    bool plain = !source.is(open - 2, ".") && !source.is(open - 2, "->") && !source.is(open - 2, "::");
    bool read = source.is(i + 1, ";") && (source.is(open - 2, "=") || source.is(open - 2, "return"));
    if (!plain || !read ||
        !returns_reference(symbols_.module_of(site.code_address), site.code_address, source.word(open - 1)))
      continue;
    Access access;
    access.first = access.address_first = open - 1;
    access.last = access.address_last = i;
    access.sign = open;
    access.calls = true;
    located.chosen = {{access}, true, ""};
    return;
  }
}

// GCC says its options, and the last -g counts.
void Locator::look_at_options(const Unit& unit, const std::string& module) {
  std::size_t at = unit.producer.rfind(" -g");
  if (at == std::string::npos || !(unit.producer.substr(at, 4) == " -g1")) return;
  std::string remark =
      module +
      " was built with -g1, which leaves out variables and types: build it with -g, so that hints of "
      "calls, references and classes can be told";
  if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end()) remarks_.push_back(std::move(remark));
}

std::string Locator::path_of(std::uint64_t code_address, const std::string& file) {
  Unit unit = symbols_.unit_at(code_address);
  bool relative = file[0] != '/' && !unit.directory.empty();
  return sources_.find(relative ? unit.directory + "/" + file : file);
}

std::optional<GivenBy> Locator::given_by_caller(const FaultSite& site, const Located& located, const Access& access) {
  std::vector<CallPlace> way;
  auto go_through = [&](std::uint64_t address) {
    for (const Frame& frame : symbols_.frames_at(address)) {
      if (frame.file.empty() || frame.line == 0) return;
      CallPlace place{path_of(address, frame.file), frame.line, frame.column};
      // From the place of the access on.
      if (!way.empty() || (place.path == located.path && place.line == located.line)) way.push_back(std::move(place));
    }
  };
  go_through(site.code_address);
  for (std::uint64_t address : site.callers) go_through(address);
  return trace::given_by_caller(sources_, *located.source, access, way);
}

}  // namespace hinterland::trace
