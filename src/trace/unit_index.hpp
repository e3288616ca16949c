// Which compilation unit of a module holds an address. libdw asks .debug_aranges, which clang does not write unless
// it is told to; here the units' own ranges are asked where it finds nothing.
#pragma once

#include <elfutils/libdwfl.h>

#include <vector>

namespace hinterland::trace {

class UnitIndex {
 public:
  // nullptr where no unit is known to hold it. `address` is one of the module's as it ran; `bias` is what that is
  // more than in the debug information. Always called with the same module, which must outlive the unit.
  Dwarf_Die* unit_at(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias);
  // The same without asking libdw first.
  Dwarf_Die* find_by_ranges(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias);

 private:
  void build(Dwfl_Module* module);

  struct Range {
    Dwarf_Addr begin, end;
    Dwarf_Die* unit;
  };
  std::vector<Range> ranges_;  // by `begin`
  Dwarf_Addr bias_ = 0;
  bool built_ = false;
};

}  // namespace hinterland::trace
