#include "advice/access.hpp"

#include <algorithm>

#include "advice/words.hpp"

namespace hinterland::trace {
namespace {

constexpr std::string_view kBinary[] = {
    "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "+",  "-",  "*", "/",   "%",
    "&", "|",  "^",  "<<", ">>", "&&", "||", "==", "!=", "<",   ">",   "<=", ">=", "?", "<=>", ","};
constexpr std::string_view kOperandEnds[] = {";", ",", "&&", "||", "?", ":", "{", "}"};

bool holds(const Access& outer, const Access& inner) {
  return &outer != &inner && outer.first <= inner.first && inner.last <= outer.last &&
         (outer.first != inner.first || outer.last != inner.last || outer.sign > inner.sign);
}

std::vector<Access> outermost(const std::vector<Access>& all) {
  std::vector<Access> result;
  for (const Access& each : all)
    if (std::none_of(all.begin(), all.end(), [&](const Access& other) { return holds(other, each); }))
      result.push_back(each);
  return result;
}

// Writes belong to what is written, where something is; reads to the others.
std::vector<Access> of_kind(const std::vector<Access>& all, bool write) {
  std::vector<Access> result;
  for (const Access& each : all)
    if (write ? each.writes : each.reads) result.push_back(each);
  return result.empty() ? all : result;
}

std::vector<Access> within(const std::vector<Access>& all, std::size_t first, std::size_t end) {
  std::vector<Access> result;
  for (const Access& each : all)
    if (first <= each.first && each.last < end) result.push_back(each);
  return result;
}

// The end of the operand that begins behind a sign, or its begin before one: up to the next thing that binds less.
std::size_t operand_end(const SourceText& source, std::size_t sign) {
  std::size_t around = source.around(sign), i = sign + 1;
  for (; i < source.tokens().size(); ++i) {
    if (around != SourceText::kNone && i == source.partner(around)) break;
    if (source.around(i) == around && one_of(source.word(i), kOperandEnds)) break;
  }
  return i;
}
std::size_t operand_begin(const SourceText& source, std::size_t sign) {
  std::size_t i = sign;
  for (; i > 0; --i) {
    if (i - 1 == source.around(sign)) break;
    std::string_view word = source.word(i - 1);
    if (source.around(i - 1) == source.around(sign) && (one_of(word, kOperandEnds) || one_of(word, kAssignments)))
      break;
  }
  return i;
}

Chosen result_of(std::vector<Access> accesses, const char* otherwise) {
  Chosen chosen;
  chosen.sure = accesses.size() == 1;
  if (accesses.size() > 1) chosen.why = "the line does not tell which of these faulted";
  if (accesses.empty()) chosen.why = otherwise;
  chosen.accesses = std::move(accesses);
  return chosen;
}

// Compilers put what an operator does with memory at the operator: `sum += a[i]` is one instruction.
std::vector<Access> at_operator(const SourceText& source, const std::vector<Access>& all, std::size_t sign,
                                bool write) {
  std::string_view word = source.word(sign);
  std::vector<Access> left = outermost(within(all, operand_begin(source, sign), sign));
  std::vector<Access> right = outermost(within(all, sign + 1, operand_end(source, sign)));
  bool assigns = one_of(word, kAssignments);
  if (assigns && write && !left.empty()) return left;
  if (word == "=" && !right.empty()) return of_kind(right, write);
  std::vector<Access> both = word == "&&" || word == "||" || left.empty() ? right : left;
  if (both.empty()) both = left;
  if (word != "&&" && word != "||" && !left.empty()) both.insert(both.end(), right.begin(), right.end());
  return of_kind(both, write);
}

std::vector<Access> at_token(const SourceText& source, const std::vector<Access>& all, std::size_t token,
                             bool write) {
  while (source.is(token + 1, "::") && token + 2 < source.tokens().size()) token += 2;  // std::memcpy
  bool call = source.is(token, "(") && token > 0 && source.tokens()[token - 1].kind == TokenKind::word;
  if (call) --token;  // some compilers name the bracket
  std::vector<Access> exact, named;
  for (const Access& each : all) {
    if (each.sign == token) exact.push_back(each);
    bool arrow = source.is(each.sign, "->");
    if (arrow && token == each.sign + 1) named.push_back(each);
    if (!arrow && token == each.first) named.push_back(each);
  }
  if (!exact.empty()) return of_kind(exact, write);
  if (!named.empty()) return outermost(of_kind(named, write));
  if (source.tokens()[token].kind == TokenKind::sign && one_of(source.word(token), kBinary))
    return at_operator(source, all, token, write);
  std::vector<Access> around;
  for (const Access& each : all)
    if (each.first <= token && token <= each.last) around.push_back(each);
  // The smallest that holds the place.
  std::stable_sort(around.begin(), around.end(),
                   [](const Access& a, const Access& b) { return a.last - a.first < b.last - b.first; });
  if (!around.empty()) around.resize(1);
  // c->sendmsg(c, &message, 0): the call stands at `c`, and what faults is what the message names.
  for (const Access& each : all)
    if (!around.empty() && !each.vector.empty() && source.is(around[0].sign, "->") && each.sign == around[0].sign + 1)
      around[0] = each;
  return around;
}

}  // namespace

Chosen choose_access(const SourceText& source, int line, int column, bool write, const KindOfName& names) {
  if (line < 1 || line > source.lines())
    return result_of({}, "the source file has no such line: it is not what was built");
  std::vector<Access> all = accesses_on(source, line, names);
  constexpr const char* kNothing = "no expression of this line touches memory: a macro, or what a function hides";
  if (all.empty()) return result_of({}, kNothing);
  std::size_t token = source.first_token_of(line), end = source.first_token_of(line + 1);
  while (token + 1 < end && source.tokens()[token + 1].column <= column) ++token;
  bool inside = column > 0 && source.tokens()[token].column <= column;
  std::vector<Access> found;
  if (inside) found = at_token(source, all, token, write);
  if (!found.empty()) return result_of(found, kNothing);
  return result_of(of_kind(outermost(all), write), kNothing);
}

std::vector<Access> loads_of(const SourceText& source, int line, const Access& access) {
  std::vector<Access> result;
  for (const Access& each : accesses_on(source, line))
    if (access.address_first <= each.first && each.last <= access.address_last && holds(access, each) && !each.writes)
      result.push_back(each);
  return result;
}

}  // namespace hinterland::trace
