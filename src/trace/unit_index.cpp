#include "trace/unit_index.hpp"

#include <elfutils/libdw.h>

#include <algorithm>

namespace hinterland::trace {

void UnitIndex::build(Dwfl_Module* module) {
  built_ = true;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias_)) != nullptr;) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;)
      if (begin != 0) ranges_.push_back({begin, end, unit});  // 0: the linker dropped it
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
}

Dwarf_Die* UnitIndex::unit_at(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, address, bias); unit != nullptr) return unit;
  return find_by_ranges(module, address, bias);
}

Dwarf_Die* UnitIndex::find_by_ranges(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias) {
  if (!built_) build(module);
  *bias = bias_;
  const auto after = std::ranges::upper_bound(ranges_, address - bias_, {}, &Range::begin);
  if (after == ranges_.begin() || address - bias_ >= std::prev(after)->end) return nullptr;
  return std::prev(after)->unit;
}

}  // namespace hinterland::trace
