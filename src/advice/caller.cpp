#include "advice/caller.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "advice/words.hpp"

namespace hinterland::trace {
namespace {

constexpr std::size_t kCallsMax = 4;

bool is_word(const SourceText& source, std::size_t i) {
  return i < source.tokens().size() && source.tokens()[i].kind == TokenKind::word;
}

// The function that a token is in: its parameters' bracket, its body.
struct Function {
  std::size_t name = SourceText::kNone, open = SourceText::kNone, body = SourceText::kNone;
};

Function function_around(const SourceText& source, std::size_t token) {
  static constexpr std::string_view kBehind[] = {"const", "noexcept", "override", "final"};
  for (std::size_t brace = source.around(token); brace != SourceText::kNone; brace = source.around(brace)) {
    if (!source.is(brace, "{") || brace == 0) continue;
    std::size_t close = brace - 1;
    while (close > 0 && one_of(source.word(close), kBehind)) --close;
    std::size_t open = source.is(close, ")") ? source.partner(close) : SourceText::kNone;
    if (open == SourceText::kNone || open == 0) {
      if (source.is(close, "]")) return {};  // a lambda without parameters
      continue;
    }
    if (one_of(source.word(open - 1), kControls)) continue;
    return is_word(source, open - 1) ? Function{open - 1, open, brace} : Function{};
  }
  return {};
}

// First and last token of each, between commas.
std::vector<std::pair<std::size_t, std::size_t>> parts_of(const SourceText& source, std::size_t open) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  std::size_t close = source.partner(open);
  if (close == SourceText::kNone) return parts;
  int angle = 0;  // std::map<K, V>& m
  for (std::size_t i = open + 1, first = i; i <= close; ++i) {
    if (source.around(i) == open && source.is(i, "<")) ++angle;
    if (source.around(i) == open && source.is(i, ">") && angle > 0) --angle;
    if (i != close && (!source.is(i, ",") || source.around(i) != open || angle > 0)) continue;
    if (i > first) parts.emplace_back(first, i - 1);
    first = i + 1;
  }
  return parts;
}

struct Parameter {
  std::size_t index = 0;
  bool pointer = false;  // else a reference
};

bool is_changed(const SourceText& source, std::size_t i) {
  std::string_view behind = source.word(i + 1), before = source.word(i - 1);
  return one_of(behind, kAssignments) || behind == "++" || behind == "--" || before == "++" || before == "--";
}

// `T& x`, `T* x`; not one whose name the body uses for something else as well, nor a pointer that it moves.
std::optional<Parameter> parameter(const SourceText& source, const Function& function, std::string_view name) {
  auto list = parts_of(source, function.open);
  for (std::size_t index = 0; index < list.size(); ++index) {
    auto [first, last] = list[index];
    if (!source.is(last, name) || last == first) continue;
    bool pointer = source.is(last - 1, "*"), reference = source.is(last - 1, "&");
    if (!pointer && !reference) return {};
    for (std::size_t i = function.body; i < source.partner(function.body); ++i) {
      if (!source.is(i, name) || source.is(i - 1, ".") || source.is(i - 1, "->")) continue;
      bool declared = is_word(source, i - 1) && source.word(i - 1) != "return";
      bool declared_by_sign = (source.is(i - 1, "&") || source.is(i - 1, "*")) && is_word(source, i - 2) &&
                              source.word(i - 2) != "return" && source.is(i + 1, "=");
      if (declared || declared_by_sign || (pointer && is_changed(source, i))) return {};
    }
    return Parameter{index, pointer};
  }
  return {};
}

// The arguments of the call of `name` at a place. Two calls of it on the line: the one at the column.
std::size_t call_at(const SourceText& source, const CallPlace& place, std::string_view name) {
  std::size_t found = SourceText::kNone;
  if (place.line < 1 || place.line > source.lines()) return SourceText::kNone;
  for (std::size_t i = source.first_token_of(place.line); i < source.first_token_of(place.line + 1); ++i) {
    if (!source.is(i, name) || !source.is(i + 1, "(")) continue;
    const Token& token = source.tokens()[i];
    bool here = token.column <= place.column && place.column <= source.tokens()[i + 1].column;
    if (found == SourceText::kNone || here) found = i + 1;
  }
  return found;
}

// `T& name = init;` before a token, in a block around it: the tokens of init.
std::pair<std::size_t, std::size_t> reference_before(const SourceText& source, std::size_t token,
                                                     std::size_t function_body, std::string_view name) {
  for (std::size_t i = token; i-- > function_body + 2;) {
    if (!source.is(i, name) || !source.is(i - 1, "&") || !is_word(source, i - 2) || !source.is(i + 1, "=")) continue;
    std::size_t block = source.around(i), end = i + 2;
    if (source.partner(block) == SourceText::kNone || source.partner(block) < token)
      return {SourceText::kNone, SourceText::kNone};
    while (end < token && !(source.is(end, ";") && source.around(end) == block)) ++end;
    return end < token ? std::pair{i + 2, end - 1} : std::pair{SourceText::kNone, SourceText::kNone};
  }
  return {SourceText::kNone, SourceText::kNone};
}

std::optional<Access> access_of(const SourceText& source, std::size_t first, std::size_t last) {
  if (source.is(first, "&") && first < last) ++first;  // its address is given
  for (const Access& each : accesses_on(source, source.tokens()[first].line))
    if (each.first == first && each.last == last && !each.whole_object)
      return each.calls || each.changes ? std::nullopt : std::optional(each);
  // &a[i] is no access, but names one.
  if (!is_word(source, first) || !source.is(last, "]") || source.partner(last) == SourceText::kNone) return {};
  std::size_t open = source.partner(last);
  for (std::size_t i = first; i < open; ++i)
    if (!is_word(source, i) && !source.is(i, ".") && !source.is(i, "->")) return {};
  Access access;
  access.first = access.address_first = first;
  access.last = access.address_last = last;
  access.sign = open;
  for (std::size_t i = open; i < last; ++i)
    if (source.is(i, "(") || source.is(i, "++") || source.is(i, "--") || source.is(i, "=")) return {};
  return access;
}

}  // namespace

std::optional<GivenBy> given_by_caller(SourceTree& sources, const SourceText& source, const Access& access,
                                       const std::vector<CallPlace>& way) {
  const SourceText* text = &source;
  std::size_t at = access.address_first;
  if (access.whole_object || !is_word(source, at)) return {};
  std::string_view root = source.word(at);
  for (std::size_t depth = 1; depth < std::min(way.size(), kCallsMax + 1); ++depth) {
    Function function = function_around(*text, at);
    std::optional<Parameter> given;
    if (function.name != SourceText::kNone) given = parameter(*text, function, root);
    const SourceText* caller = given ? sources.read(way[depth].path) : nullptr;
    std::size_t open =
        caller != nullptr ? call_at(*caller, way[depth], text->word(function.name)) : SourceText::kNone;
    if (open == SourceText::kNone) return {};
    auto arguments = parts_of(*caller, open);
    if (given->index >= arguments.size()) return {};
    auto [first, last] = arguments[given->index];
    bool named = first == last && is_word(*caller, first);
    if (named) {
      root = caller->word(first);
      Function around = function_around(*caller, first);
      if (around.body == SourceText::kNone) return {};
      std::tie(first, last) = reference_before(*caller, open, around.body, root);
    } else if (given->pointer && !caller->is(first, "&")) {
      return {};  // p + 1, f(): what it points to is not named
    }
    if (first != SourceText::kNone) {
      std::optional<Access> there = access_of(*caller, first, last);
      if (!there) return {};
      return GivenBy{*there, way[depth].path, caller->tokens()[there->first].line, caller, depth};
    }
    text = caller;  // the caller's own parameter, perhaps
    at = open;
  }
  return {};
}

}  // namespace hinterland::trace
