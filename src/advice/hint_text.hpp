// The text of a hint, in C or C++, and the changes to a source file that put it in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advice/access.hpp"
#include "advice/source_text.hpp"
#include "advice/statement.hpp"

namespace hinterland::trace {

enum class Dialect : std::uint8_t { c, cxx, cxx20 };  // cxx: before C++20, which hint.hpp needs

// What a hint says.
struct HintForm {
  bool write = false;
  bool sequential = false;
  std::int32_t read_ahead = 0;  // pages
  int priority = 0;             // 0 to 15
  std::string size;             // an expression, bytes; "": not said
  bool operator==(const HintForm&) const = default;
  // More than hl_read() and its like can say.
  bool needs_options() const { return read_ahead != 0 || priority != 0 || !size.empty(); }
};

// In C++ before C++20 there is only hl_prefetch(), which takes a size, and no more.
inline bool can_say_size(Dialect dialect, const HintForm& form) {
  return dialect != Dialect::cxx || (!form.write && !form.sequential && form.read_ahead == 0);
}
// "hl_seq_read(&a[i]);"; of a `pack` of C++, "(hl::read(&a[i]), ...);"
std::string hint_statement(Dialect dialect, const HintForm& form, const std::string& address, bool pack = false);
// "hinterland/hint.h"
const char* header_of(Dialect dialect);

struct Insertion {
  std::size_t offset = 0;  // into the source
  std::string text;
  // Of a pair, around something: where the other one is. Nests pairs that begin or end at one place.
  std::size_t other_end = SourceText::kNone;
  std::size_t removes = 0;  // bytes of the source from `offset` on, on one line
  // Of what hints of one loop need once: of these, the first one is written.
  bool shared = false;
  bool operator==(const Insertion&) const = default;
};

struct PlacedHint {
  std::string statement;              // as people read it
  std::string where;                  // "before line 36", "in line 36"
  std::vector<Insertion> insertions;  // none: it cannot be put there
  std::string why_not;
};

// `in_place_only`: the address must not be evaluated twice (types that are not known, in C++).
PlacedHint place_hint(const SourceText& source, Dialect dialect, const HintForm& form, const Access& access,
                      bool in_place_only);
// Before the loop, for all that it will touch.
PlacedHint place_before_loop(const SourceText& source, Dialect dialect, const HintForm& form,
                             const CountingLoop& loop, const Hoisted& hoisted);
// `*p` of a loop that steps p up to an end: for all of it, before the loop, or where the loop declares its end.
PlacedHint place_walk_before_loop(const SourceText& source, Dialect dialect, const HintForm& form,
                                  const Access& access);
// The loop in pieces of 64 pages, with a hint for all of a piece before it. It goes round just as often, with the
// same values of its variable, whatever its body does to the bounds.
PlacedHint place_in_pieces(const SourceText& source, Dialect dialect, const HintForm& form, const CountingLoop& loop,
                           const Access& access);
// The line that includes the header, where the file does not have it.
std::vector<Insertion> include_header(const SourceText& source, Dialect dialect, int before_line);

}  // namespace hinterland::trace
