// Of which types an expression's parts are, as debug information tells: in C++, `a[i]` may be a function that does
// something.
#pragma once

#include <cstdint>
#include <string_view>

#include "advice/access.hpp"

struct Dwfl_Module;

namespace hinterland::trace {

enum class AddressKind : std::uint8_t {
  plain,     // pointers, arrays and members: evaluating it changes nothing
  iterator,  // the same; but `*it` is an object, whose address is `&*it`
  unknown,   // not told: a class of the program's own, a cast, no debug information
};

// Of an access of the code at this address of a process, where the module lies as it did there.
AddressKind address_kind(Dwfl_Module* module, std::uint64_t code_address, const SourceText& source,
                         const Access& access);

// Whether a function that is called there, of the code's class or its bases, returns a reference: then the call's
// value may be what touched memory.
bool returns_reference(Dwfl_Module* module, std::uint64_t code_address, std::string_view function);

// What a name in that code is.
NameKind kind_of_name(Dwfl_Module* module, std::uint64_t code_address, std::string_view name);

}  // namespace hinterland::trace
