// Which function of a compilation unit holds an address, and what was inlined there. libdw's own search
// (dwarf_getscopes) goes through all of the unit for each address, a millisecond or two in large ones; this goes
// through it once.
#pragma once

#include <elfutils/libdw.h>

#include <vector>

namespace hinterland::trace {

class FunctionIndex {
 public:
  // Of all functions with code in the unit. It must outlive this.
  explicit FunctionIndex(Dwarf_Die unit);
  // The scopes that hold the address (blocks, inlined functions, the function itself), innermost first; none where no
  // function is known. The address is as the debug information has it, without the module's bias.
  std::vector<Dwarf_Die> scopes_at(Dwarf_Addr address) const;

 private:
  void add_children(Dwarf_Die& parent);
  void add(Dwarf_Die& function);

  struct Range {
    Dwarf_Addr begin, end;
    Dwarf_Die function;
  };
  std::vector<Range> ranges_;  // by `begin`
};

}  // namespace hinterland::trace
