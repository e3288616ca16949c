#include "trace/function_index.hpp"

#include <dwarf.h>

#include <algorithm>

namespace hinterland::trace {
namespace {

template <typename Visit>
void for_each_child(Dwarf_Die& parent, Visit&& visit) {
  Dwarf_Die child;
  if (dwarf_child(&parent, &child) != 0) return;
  do visit(child);
  while (dwarf_siblingof(&child, &child) == 0);
}

// What can lie between a function and code inlined into it. Others have addresses, too, but no code of their own.
bool has_code(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
         tag == DW_TAG_catch_block;
}

}  // namespace

FunctionIndex::FunctionIndex(Dwarf_Die unit) {
  add_children(unit);
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

void FunctionIndex::add_children(Dwarf_Die& parent) {
  for_each_child(parent, [this](Dwarf_Die& child) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        return add(child);
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        return add_children(child);
      default:
        return;
    }
  });
}

void FunctionIndex::add(Dwarf_Die& function) {
  Dwarf_Addr base = 0, begin = 0, end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&function, at, &base, &begin, &end)) > 0;)
    ranges_.push_back({begin, end, function});
}

std::vector<Dwarf_Die> FunctionIndex::scopes_at(Dwarf_Addr address) const {
  std::vector<Dwarf_Die> scopes;
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](Dwarf_Addr wanted, const Range& range) { return wanted < range.begin; });
  if (after == ranges_.begin() || address >= std::prev(after)->end) return scopes;
  scopes.push_back(std::prev(after)->function);
  for (bool deeper = true; deeper;) {
    deeper = false;
    Dwarf_Die around = scopes.back(), inner;
    for_each_child(around, [&](Dwarf_Die& child) {
      if (deeper || !has_code(dwarf_tag(&child)) || dwarf_haspc(&child, address) <= 0) return;
      inner = child;
      deeper = true;
    });
    if (deeper) scopes.push_back(inner);
  }
  std::reverse(scopes.begin(), scopes.end());
  return scopes;
}

}  // namespace hinterland::trace
