// Where a function was given what it touches: `distance(points[i], centre)` for the `a[d]` within distance(). There
// the address is known earlier, and what goes through a row shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "advice/access.hpp"
#include "advice/source_text.hpp"
#include "advice/source_tree.hpp"

namespace hinterland::trace {

// A place on the way to the access: it, then the call that it is in, and so on outwards.
struct CallPlace {
  std::string path;  // of the source file, where it is; "" when unknown
  int line = 0, column = 0;
};

struct GivenBy {
  Access access;  // in the caller's source: what it gave
  std::string path;
  int line = 0;
  const SourceText* source = nullptr;
  std::size_t depth = 0;  // how many calls further out
};

// Of an access by `way[0]` that begins with a parameter of its function, which is a reference or pointer and is not
// changed there: the expression that a caller gave for it. Of `const T& x = a[i]` in a caller it is a[i]; of what the
// caller was given itself, its own caller's. Nothing where the text leaves a doubt.
std::optional<GivenBy> given_by_caller(SourceTree& sources, const SourceText& source, const Access& access,
                                       const std::vector<CallPlace>& way);

}  // namespace hinterland::trace
