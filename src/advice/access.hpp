// The expressions of a line that touch memory: `a[i]`, `p->x`, `*p`, and what memcpy() and its kin are given; and
// which of them a fault belongs to.
//
// Source text alone does not tell everything. Where it leaves a choice, all that it could be is named, and that it
// is not sure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "advice/source_text.hpp"

namespace hinterland::trace {

struct Access {
  std::size_t first = 0, last = 0;  // tokens of the expression, with the members behind it: p->a.b
  std::size_t sign = 0;             // the token that touches memory: [ -> * or the name of a function
  // What its address is made of: `&` before these tokens, or these tokens themselves.
  std::size_t address_first = 0, address_last = 0;
  bool needs_ampersand = true;
  bool is_iterator = false;   // of a `*it`: its address is `&*it`
  bool whole_object = false;  // an argument of memcpy(), a method's object: not an expression of the type touched
  bool is_pack = false;       // `a[i]...`: one for each of a pack of C++
  int loads = 0;              // other accesses that its address takes
  bool calls = false;         // functions that its address takes: it must not be evaluated twice
  bool changes = false;       // ++, = and the like in its address: the same
  bool writes = false, reads = true;
  std::string size;  // bytes, where the source says so: memcpy's third argument
  // Of sendmsg(), writev() and their kin: the array of struct iovec that says what is touched, and how many it has.
  std::string vector, vector_count;

  // [begin, end) of an algorithm.
  bool is_range() const { return whole_object && is_iterator; }
  // "&p->x"
  std::string address(const SourceText& source) const;
};

struct Chosen {
  std::vector<Access> accesses;  // one; several when not sure; none when there is none
  bool sure = false;
  std::string why;  // not sure, or nothing found: a sentence
};

// Whether a name touches memory by itself (a reference, a member of `this`), or points to it: for a call that may be
// a macro. Source text alone does not tell.
enum class NameKind : std::uint8_t { other, touches, points };
using KindOfName = std::function<NameKind(std::string_view name)>;

// All that begin or end on the line.
std::vector<Access> accesses_on(const SourceText& source, int line, const KindOfName& names = {});

// What the address of one of them loads: b[i] of a[b[i]].
std::vector<Access> loads_of(const SourceText& source, int line, const Access& access);

// What a fault at this place touched. `column` 0: unknown. `write`: the fault was one.
Chosen choose_access(const SourceText& source, int line, int column, bool write, const KindOfName& names = {});

}  // namespace hinterland::trace
