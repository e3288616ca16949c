// The statement around an expression, and the loop around that: where a hint can stand, and whether it may be written
// down a second time there.
#pragma once

#include <optional>
#include <string>

#include "advice/access.hpp"
#include "advice/source_text.hpp"

namespace hinterland::trace {

enum class Standing : std::uint8_t {
  nowhere,   // not inside a function, as far as the text tells
  in_place,  // only within the expression
  before,    // a statement of its own, before this one
  body,      // the same, with braces around both: the body of an if or a loop
};

struct Statement {
  Standing standing = Standing::nowhere;
  std::size_t first = 0, last = 0;  // tokens; last is the `;` of a body
  // To the left of the expression in its statement:
  bool conditional = false;  // && || ?: so the expression may not be evaluated at all
  bool calls = false;        // functions, which may change what its address is made of, or not return
};

// Of the token where an access begins.
Statement statement_of(const SourceText& source, std::size_t token);

// Something to the left of the access in its statement changes, declares or gives away a variable of its address.
bool changes_before(const SourceText& source, const Statement& statement, const Access& access);

// `for (T i = begin; i < end; ++i)` around a statement.
struct CountingLoop {
  std::size_t keyword = 0;  // token
  std::size_t body_first = 0, body_last = 0;
  std::string variable, begin, end;
  std::string type;                                           // of the variable, where the loop declares it
  std::size_t begin_first = 0, begin_last = 0, end_last = 0;  // tokens
};
// The innermost loop around it, if it is such a one.
std::optional<CountingLoop> counting_loop_around(const SourceText& source, std::size_t token);

// `for (...; p < end; ++p)` around `*p`, which does nothing else with p, and did not declare it.
struct WalkingLoop {
  std::size_t keyword = 0;  // token
  std::string end;          // a name
  // Tokens of the value with which the loop declares its end; both 0: it is declared before.
  std::size_t end_first = 0, end_last = 0;
};
// The innermost loop around it, if it is such a one.
std::optional<WalkingLoop> walking_loop_around(const SourceText& source, const Access& access);

// Whether it can be cut into pieces: it declares its variable, nothing else changes that, and its body neither leaves
// it by `break` or `goto` nor has a label to come back to.
bool can_be_cut(const SourceText& source, const CountingLoop& loop);
// Its bounds are numbers, or named as constants are: kSize, SIZE. Such loops are short.
bool has_fixed_length(const CountingLoop& loop);

// `a[i]` of a loop over i, where neither a nor the bounds change in the loop: "&a[begin]" and the bytes of all.
struct Hoisted {
  std::string address, size;
  bool is_pack = false;
};
std::optional<Hoisted> hoisted(const SourceText& source, const CountingLoop& loop, const Access& access);

}  // namespace hinterland::trace
