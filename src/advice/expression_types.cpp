#include "advice/expression_types.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace hinterland::trace {
namespace {

// Classes of the standard library whose [], -> and * only look.
constexpr std::string_view kIndexed[] = {"vector<", "array<",   "span<", "basic_string<", "basic_string_view<",
                                         "deque<",  "valarray<"};
constexpr std::string_view kPointing[] = {"unique_ptr<", "shared_ptr<", "__normal_iterator<", "_Deque_iterator<",
                                          "__shared_ptr_access<"};

template <std::size_t N>
bool starts_with_one(std::string_view name, const std::string_view (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view each) { return name.starts_with(each); });
}

std::string_view name_of(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name != nullptr ? name : "";
}

// Without typedefs, const and references. False: void, or not told.
bool type_of(Dwarf_Die* die, Dwarf_Die* type) {
  Dwarf_Attribute attribute;
  Dwarf_Die next;
  if (dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), &next) == nullptr) return false;
  for (;;) {
    if (dwarf_peel_type(&next, type) != 0) return false;
    int tag = dwarf_tag(type);
    if (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type) return true;
    if (dwarf_formref_die(dwarf_attr_integrate(type, DW_AT_type, &attribute), &next) == nullptr) return false;
  }
}

bool is_class(Dwarf_Die* type) {
  int tag = dwarf_tag(type);
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

// A child by name, among those with one of the tags; of a base class or an anonymous union as well.
bool find_child(Dwarf_Die* parent, std::string_view name, Dwarf_Die* found, int depth = 0) {
  Dwarf_Die child;
  if (depth > 8 || dwarf_child(parent, &child) != 0) return false;
  do {
    int tag = dwarf_tag(&child);
    bool named = tag == DW_TAG_member || tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
    Dwarf_Die type;
    if (named && name_of(&child) == name) {
      *found = child;
      return true;
    }
    bool inside = tag == DW_TAG_inheritance || (tag == DW_TAG_member && name_of(&child).empty());
    if (inside && type_of(&child, &type) && find_child(&type, name, found, depth + 1)) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// The same for functions; false when one that does not return a reference has the name, too.
bool all_return_references(Dwarf_Die* parent, std::string_view name, bool* found, int depth = 0) {
  Dwarf_Die child, type;
  Dwarf_Attribute attribute;
  if (depth > 8 || dwarf_child(parent, &child) != 0) return true;
  do {
    int tag = dwarf_tag(&child);
    if (tag == DW_TAG_inheritance && type_of(&child, &type) && !all_return_references(&type, name, found, depth + 1))
      return false;
    if (tag != DW_TAG_subprogram || name_of(&child) != name) continue;
    bool has_type = dwarf_formref_die(dwarf_attr_integrate(&child, DW_AT_type, &attribute), &type) != nullptr;
    if (!has_type || dwarf_tag(&type) != DW_TAG_reference_type) return false;
    *found = true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return true;
}

bool first_template_type(Dwarf_Die* type, Dwarf_Die* found) {
  Dwarf_Die child;
  if (dwarf_child(type, &child) != 0) return false;
  do {
    if (dwarf_tag(&child) == DW_TAG_template_type_parameter) return type_of(&child, found);
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// What a variable of this name is at a place in the code: of the innermost scope that has one.
class Scope {
 public:
  Scope(Dwfl_Module* module, std::uint64_t code_address) {
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, code_address, &bias), *lexical = nullptr;
    if (unit == nullptr || dwarf_getscopes(unit, code_address - bias, &lexical) <= 0) return;
    Dwarf_Die* scopes = nullptr;
    int count = dwarf_getscopes_die(&lexical[0], &scopes);
    for (int i = 0; i < count; ++i) scopes_.push_back(scopes[i]);
    scopes_.push_back(*unit);
    std::free(lexical);
    std::free(scopes);
  }

  NameKind kind_of(std::string_view name) {
    for (Dwarf_Die& scope : scopes_) {
      Dwarf_Die found, type, self, object, pointer;
      Dwarf_Attribute attribute;
      if (find_child(&scope, name, &found)) {
        Dwarf_Die* target = dwarf_formref_die(dwarf_attr_integrate(&found, DW_AT_type, &attribute), &type);
        if (target == nullptr) return NameKind::other;
        int tag = dwarf_tag(&type);
        if (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) return NameKind::touches;
        return type_of(&found, &type) && dwarf_tag(&type) == DW_TAG_pointer_type ? NameKind::points : NameKind::other;
      }
      if (find_child(&scope, "this", &self) && type_of(&self, &pointer) && type_of(&pointer, &object) &&
          find_child(&object, name, &found))
        return dwarf_tag(&found) == DW_TAG_member ? NameKind::touches : NameKind::other;
    }
    return NameKind::other;
  }

  bool returns_reference(std::string_view name) {
    Dwarf_Die self, object, pointer;
    for (Dwarf_Die& scope : scopes_) {
      bool found = false;
      if (!find_child(&scope, "this", &self) || !type_of(&self, &pointer) || !type_of(&pointer, &object)) continue;
      return all_return_references(&object, name, &found) && found;
    }
    return false;
  }

  bool type_of_name(std::string_view name, Dwarf_Die* type) {
    for (Dwarf_Die& scope : scopes_) {
      Dwarf_Die found;
      if (find_child(&scope, name, &found)) return type_of(&found, type);
      Dwarf_Die self, object, pointer;
      if (find_child(&scope, "this", &self) && type_of(&self, &pointer) && type_of(&pointer, &object) &&
          find_child(&object, name, &found))
        return type_of(&found, type);
    }
    return false;
  }

 private:
  std::vector<Dwarf_Die> scopes_;  // innermost first
};

class Walk {
 public:
  Walk(Scope& scope, const SourceText& source) : scope_(scope), source_(source) {}

  // Of the tokens [first, last], which begin with a name: the kind of evaluating them, all brackets included.
  AddressKind chain(std::size_t first, std::size_t last) {
    AddressKind kind = AddressKind::plain;
    Dwarf_Die type;
    if (!scope_.type_of_name(source_.word(first), &type)) return AddressKind::unknown;
    for (std::size_t i = first + 1; i <= last; ++i) {
      std::string_view word = source_.word(i);
      if (word == "[") {
        if (inside(i) == AddressKind::unknown || !element(&type)) return AddressKind::unknown;
        i = source_.partner(i);
      } else if (word == "->" || word == ".") {
        if (word == "->" && !pointee(&type)) return AddressKind::unknown;
        Dwarf_Die member;
        if (!is_class(&type) || !find_child(&type, source_.word(++i), &member)) return AddressKind::unknown;
        if (!type_of(&member, &type)) return AddressKind::unknown;
      } else {
        return AddressKind::unknown;
      }
    }
    last_ = type;
    return kind;
  }

  // Of what stands in [brackets]: names, numbers and arithmetic, or chains of the same kind.
  AddressKind inside(std::size_t open) {
    Dwarf_Die kept = last_;
    for (std::size_t i = open + 1; i < source_.partner(open); ++i) {
      if (source_.tokens()[i].kind != TokenKind::word) continue;
      std::size_t last = i;
      while (source_.is(last + 1, "[") ||
             ((source_.is(last + 1, "->") || source_.is(last + 1, ".")) && last + 2 < source_.partner(open)))
        last = source_.is(last + 1, "[") ? source_.partner(last + 1) : last + 2;
      if (last > i && chain(i, last) == AddressKind::unknown) return AddressKind::unknown;
      i = last;
    }
    last_ = kept;
    return AddressKind::plain;
  }

  AddressKind starred(std::size_t first, std::size_t last) {
    if (chain(first, last) == AddressKind::unknown) return AddressKind::unknown;
    if (dwarf_tag(&last_) == DW_TAG_pointer_type) return AddressKind::plain;
    return is_class(&last_) && starts_with_one(name_of(&last_), kPointing) ? AddressKind::iterator
                                                                           : AddressKind::unknown;
  }

 private:
  static bool element(Dwarf_Die* type) {
    Dwarf_Die next;
    int tag = dwarf_tag(type);
    bool found = tag == DW_TAG_pointer_type || tag == DW_TAG_array_type
                     ? type_of(type, &next)
                     : is_class(type) && starts_with_one(name_of(type), kIndexed) && first_template_type(type, &next);
    if (found) *type = next;
    return found;
  }
  static bool pointee(Dwarf_Die* type) {
    Dwarf_Die next;
    bool found =
        dwarf_tag(type) == DW_TAG_pointer_type
            ? type_of(type, &next)
            : is_class(type) && starts_with_one(name_of(type), kPointing) && first_template_type(type, &next);
    if (!found) return false;
    *type = next;
    // An iterator's parameter is the pointer.
    return dwarf_tag(type) != DW_TAG_pointer_type || (type_of(type, &next) && ((*type = next), true));
  }

  Scope& scope_;
  const SourceText& source_;
  Dwarf_Die last_{};
};

}  // namespace

NameKind kind_of_name(Dwfl_Module* module, std::uint64_t code_address, std::string_view name) {
  return module != nullptr ? Scope(module, code_address).kind_of(name) : NameKind::other;
}

bool returns_reference(Dwfl_Module* module, std::uint64_t code_address, std::string_view function) {
  return module != nullptr && Scope(module, code_address).returns_reference(function);
}

AddressKind address_kind(Dwfl_Module* module, std::uint64_t code_address, const SourceText& source,
                         const Access& access) {
  if (module == nullptr || access.calls || access.changes) return AddressKind::unknown;
  Scope scope(module, code_address);
  Walk walk(scope, source);
  bool star = source.is(access.sign, "*") && access.sign == access.first;
  if (star) return walk.starred(access.address_first, access.address_last);
  return walk.chain(access.address_first, access.address_last);
}

}  // namespace hinterland::trace
