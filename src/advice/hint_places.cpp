#include "advice/hint_places.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace hinterland::trace {
namespace {

constexpr int kDepthMax = 256;
constexpr std::string_view kForms[] = {"hl_read", "hl_write", "hl_prefetch", "hl__hint", "hl__touch_in_order",
                                       "read",    "write",    "prefetch"};
// With template arguments behind them.
constexpr std::string_view kTemplates[] = {"hint<", "seq_read<", "seq_write<"};

bool is_header(std::string_view path) {
  return path.ends_with("/hinterland/hint.h") || path.ends_with("/hinterland/hint.hpp");
}

bool is_form(std::string_view name) {
  return std::find(std::begin(kForms), std::end(kForms), name) != std::end(kForms) ||
         std::any_of(std::begin(kTemplates), std::end(kTemplates),
                     [&](std::string_view form) { return name.starts_with(form); });
}

// Those of one unit. With HL_NO_HINTS they have no code.
class UnitWalk {
 public:
  explicit UnitWalk(Dwarf_Die* unit) : unit_(unit) { dwarf_getsrcfiles(unit, &files_, &files_count_); }

  bool includes_hints() const {
    for (std::size_t i = 0; i < files_count_; ++i)
      if (is_header(file(i))) return true;
    return false;
  }
  void run(std::vector<HintPlace>& places) { children(unit_, "", 0, places); }

 private:
  std::string_view file(std::size_t number) const {
    const char* name = number < files_count_ ? dwarf_filesrc(files_, number, nullptr, nullptr) : nullptr;
    return name != nullptr ? name : "";
  }
  static Dwarf_Word number(Dwarf_Die* die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) == 0 ? value : 0;
  }

  void children(Dwarf_Die* parent, const std::string& function, int depth, std::vector<HintPlace>& places) {
    Dwarf_Die child;
    if (depth > kDepthMax || dwarf_child(parent, &child) != 0) return;
    do {
      int tag = dwarf_tag(&child);
      bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
      const char* name = is_function ? dwarf_diename(&child) : nullptr;
      bool has_code = dwarf_hasattr(&child, DW_AT_low_pc) != 0 || dwarf_hasattr(&child, DW_AT_ranges) != 0;
      if (tag == DW_TAG_inlined_subroutine && name != nullptr && is_form(name) &&
          is_header(file(number(&child, DW_AT_decl_file)))) {
        std::string_view caller = file(number(&child, DW_AT_call_file));
        int line = static_cast<int>(number(&child, DW_AT_call_line));
        if (!is_header(caller) && line > 0 && has_code) places.push_back({std::string(caller), function, line});
        continue;
      }
      if (is_function || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
          tag == DW_TAG_structure_type)
        children(&child, name != nullptr ? name : function, depth + 1, places);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  Dwarf_Die* unit_;
  Dwarf_Files* files_ = nullptr;
  std::size_t files_count_ = 0;
};

}  // namespace

std::vector<HintPlace> hint_places(const TraceFile& trace, Symbols& symbols) {
  std::vector<HintPlace> all, places;
  std::set<std::string> modules;
  for (const Module& module : trace.modules) {
    if (!modules.insert(module.path).second) continue;
    Dwfl_Module* loaded = symbols.module_of(module.start);
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = nullptr;
    while (loaded != nullptr && (unit = dwfl_module_nextcu(loaded, unit, &bias)) != nullptr) {
      UnitWalk walk(unit);
      if (walk.includes_hints()) walk.run(all);
    }
  }
  std::set<std::pair<std::string, int>> known;
  for (HintPlace& place : all)
    if (known.emplace(place.file, place.line).second) places.push_back(std::move(place));
  return places;
}

}  // namespace hinterland::trace
