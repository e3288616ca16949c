#include "advice/statement.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "advice/words.hpp"

namespace hinterland::trace {
namespace {

// Before the brace of a function's body, a lambda's, or a block's.
constexpr std::string_view kBeforeBlock[] = {";",     "{",        "}",       ":",        "else",  "do",      "try",
                                             "const", "noexcept", "mutable", "override", "final", "volatile"};

bool is_word(const SourceText& source, std::size_t i) {
  return i < source.tokens().size() && source.tokens()[i].kind == TokenKind::word;
}

// `{` of statements, not of values. Behind `-> T` and `]` (a lambda) it is one, too.
bool is_block(const SourceText& source, std::size_t open) {
  if (!source.is(open, "{") || open == 0) return false;
  if (one_of(source.word(open - 1), kBeforeBlock)) return true;
  if (source.is(open - 1, ")")) {  // f(...) {, if (...) {; but not (struct point){1, 2}
    std::size_t bracket = source.partner(open - 1);
    if (bracket == SourceText::kNone || bracket == 0) return false;
    std::string_view before = source.word(bracket - 1);
    return (is_word(source, bracket - 1) && before != "return") || before == "]" || before == ">" || before == ")";
  }
  if (source.is(open - 1, "]")) {
    std::size_t capture = source.partner(open - 1);
    return capture != SourceText::kNone && (capture == 0 || !is_word(source, capture - 1));
  }
  for (std::size_t i = open; i > 0 && open - i < 12; --i)  // ) -> std::size_t {
    if (source.is(i, "->")) return source.is(i - 1, ")");
  return false;
}

// A block in which there is a `)` of a function or control somewhere before: not that of a namespace or a class.
bool is_in_function(const SourceText& source, std::size_t block) {
  for (std::size_t open = block; open != SourceText::kNone; open = source.around(open)) {
    if (!source.is(open, "{") || open == 0) continue;
    std::string_view before = source.word(open - 1);
    if (before == ")" || before == "]") return true;
    for (std::size_t i = open; i > 0 && open - i < 12 && !source.is(i - 1, ";") && !source.is(i - 1, "}"); --i)
      if (source.is(i - 1, ")")) return true;
  }
  return false;
}

// The token behind the last statement or label before `token`, in the block.
std::size_t statement_begin(const SourceText& source, std::size_t block, std::size_t token) {
  std::size_t i = token;
  for (; i > block + 1; --i) {
    std::size_t before = i - 1;
    std::string_view word = source.word(before);
    if (source.around(before) == block && word == ";") break;
    if (word == "}" && source.around(before) == block) {
      std::size_t open = source.partner(before);
      if (open == SourceText::kNone || is_block(source, open)) break;
      i = open + 1;  // values: part of the expression
    } else if (word == ")" || word == "]") {
      std::size_t open = source.partner(before);
      if (open != SourceText::kNone) i = open + 1;
    } else if (word == ":" && source.around(before) == block) {
      bool label =
          source.is(before - 1, "default") || (is_word(source, before - 1) && before >= 2 &&
                                               (source.is(before - 2, ";") || source.is(before - 2, "{") ||
                                                source.is(before - 2, "}") || source.is(before - 2, "case")));
      bool number = before >= 2 && source.is(before - 2, "case");
      if (label || number) break;
    }
  }
  return i;
}

// Whether the expression at `token` comes behind &&, || or ? among the tokens of one bracket, from `first` on.
bool is_conditional(const SourceText& source, std::size_t first, std::size_t token) {
  for (std::size_t i = first; i < token; ++i) {
    if (source.around(i) != source.around(first)) continue;
    std::string_view word = source.word(i);
    if (word == "&&" || word == "||" || word == "?" || word == "and" || word == "or") return true;
  }
  return false;
}

// Before `token`; not those that it is an argument of, which run later.
bool has_call(const SourceText& source, std::size_t first, std::size_t token) {
  for (std::size_t i = std::max<std::size_t>(first, 1); i < token; ++i) {
    if (!source.is(i, "(") || source.partner(i) == SourceText::kNone || source.partner(i) > token) continue;
    std::string_view before = source.word(i - 1);
    bool named = is_word(source, i - 1) && !one_of(before, kControls) && before != "sizeof" && before != "return";
    if (named || before == ">" || before == "]" || before == ")") return true;
  }
  return false;
}

std::size_t statement_end(const SourceText& source, std::size_t block, std::size_t token) {
  std::size_t i = token;
  while (i < source.tokens().size() && !(source.around(i) == block && source.is(i, ";"))) {
    if (source.partner(i) != SourceText::kNone && source.partner(i) > i) i = source.partner(i);
    if (i >= source.partner(block)) return SourceText::kNone;
    ++i;
  }
  return i < source.tokens().size() ? i : SourceText::kNone;
}

// Steps over `if (...)`, `else`, `for (...)` before the statement that the token is in. True when it is in such
// brackets itself.
bool step_over_controls(const SourceText& source, std::size_t token, std::size_t* begin, bool* is_body, bool* loops) {
  for (;;) {
    std::string_view word = source.word(*begin);
    if (word == "else" || word == "do") {
      ++*begin;
      *is_body = true;
      continue;
    }
    if (!one_of(word, kControls)) return false;
    std::size_t open = *begin + 1;
    if (source.is(open, "constexpr")) ++open;
    std::size_t close = source.partner(open);
    if (!source.is(open, "(") || close == SourceText::kNone) return false;
    if (token < close) {
      *loops = word == "while";
      if (word == "for")  // only the first of its three parts is evaluated once, and before all
        for (std::size_t i = open + 1; i < close; ++i)
          if (source.around(i) == open && (source.is(i, ";") || source.is(i, ":"))) {
            *loops = *loops || (source.is(i, ";") && i < token);
          }
      return true;
    }
    *begin = close + 1;
    *is_body = true;
  }
}

}  // namespace

Statement statement_of(const SourceText& source, std::size_t token) {
  Statement statement;
  std::size_t block = source.around(token), place = token;
  // Out of the brackets around it, up to the block.
  while (block != SourceText::kNone && !is_block(source, block)) {
    if (source.partner(block) == SourceText::kNone) return statement;
    statement.conditional = statement.conditional || is_conditional(source, block + 1, place);
    place = block;
    block = source.around(block);
  }
  if (block == SourceText::kNone || source.partner(block) == SourceText::kNone || !is_in_function(source, block))
    return statement;
  std::size_t begin = statement_begin(source, block, place);
  bool is_body = false, loops = false;
  bool in_control = step_over_controls(source, token, &begin, &is_body, &loops);
  statement.first = begin;
  statement.conditional = statement.conditional || is_conditional(source, begin, place);
  statement.calls = has_call(source, begin, token);
  statement.standing = Standing::before;
  if (in_control && (loops || is_body)) statement.standing = Standing::in_place;
  if (source.is(begin, "while") && begin > 0 && source.is(begin - 1, "}"))
    statement.standing = Standing::in_place;  // do {} while
  if (!in_control && is_body) {
    statement.standing = Standing::body;
    statement.last = statement_end(source, block, begin);
    if (statement.last == SourceText::kNone || source.is(begin, "{")) statement.standing = Standing::in_place;
  }
  static constexpr std::string_view kNoPlaceBefore[] = {"case", "default", "public", "private", "protected"};
  if (one_of(source.word(begin), kNoPlaceBefore)) statement.standing = Standing::in_place;
  return statement;
}

bool changes_before(const SourceText& source, const Statement& statement, const Access& access) {
  std::vector<std::string_view> names;
  for (std::size_t i = access.address_first; i <= access.address_last; ++i)
    if (is_word(source, i) && (i == 0 || (!source.is(i - 1, ".") && !source.is(i - 1, "->"))))
      names.push_back(source.word(i));  // not of members
  auto is_name = [&](std::size_t i) {
    return is_word(source, i) && std::find(names.begin(), names.end(), source.word(i)) != names.end();
  };
  for (std::size_t i = statement.first; i < access.first; ++i) {
    if (!is_name(i)) continue;
    std::string_view behind = source.word(i + 1), before = i > 0 ? source.word(i - 1) : "";
    if (one_of(behind, kAssignments) || behind == "++" || behind == "--") return true;
    if (before == "++" || before == "--") return true;
    bool is_type = before == "&" && i >= 2 && is_word(source, i - 2);  // T& name: declared
    if (before == "&" && (is_type || !is_word(source, i - 2))) return true;
    if (is_word(source, i - 1) && before != "return" && before != "case" && before != "else" && before != "throw" &&
        i > statement.first)
      return true;  // declared here
  }
  return false;
}

namespace {

// The innermost `for (...; ...; ...)` around a token.
struct LoopHead {
  std::size_t open = SourceText::kNone;
  std::size_t body_first = 0, body_last = 0;
  std::vector<std::size_t> semicolons;  // two
};

LoopHead loop_head_around(const SourceText& source, std::size_t token) {
  std::size_t block = source.around(token);
  while (block != SourceText::kNone && !is_block(source, block)) block = source.around(block);
  if (block == SourceText::kNone) return {};
  LoopHead loop;
  std::size_t begin = statement_begin(source, block, token);
  if (source.is(begin, "for") && source.partner(begin + 1) != SourceText::kNone &&
      source.partner(begin + 1) < token) {
    loop.open = begin + 1;
    loop.body_first = source.partner(loop.open) + 1;
    loop.body_last = statement_end(source, block, loop.body_first);
  } else if (block > 0 && source.is(block - 1, ")")) {
    loop.open = source.partner(block - 1);
    loop.body_first = block;
    loop.body_last = source.partner(block);
  }
  if (loop.open == SourceText::kNone || loop.open == 0 || loop.body_last == SourceText::kNone ||
      !source.is(loop.open - 1, "for"))
    return {};
  for (std::size_t i = loop.open; i < source.partner(loop.open); ++i)
    if (source.around(i) == loop.open && source.is(i, ";")) loop.semicolons.push_back(i);
  if (loop.semicolons.size() != 2) return {};
  return loop;
}

}  // namespace

std::optional<WalkingLoop> walking_loop_around(const SourceText& source, const Access& access) {
  bool plain = source.is(access.sign, "*") && access.sign == access.first && !access.needs_ampersand &&
               access.address_first == access.address_last && is_word(source, access.address_first);
  LoopHead loop = plain ? loop_head_around(source, access.first) : LoopHead{};
  if (loop.open == SourceText::kNone) return {};
  std::string_view name = source.word(access.address_first);
  std::size_t test = loop.semicolons[0] + 1, step = loop.semicolons[1] + 1, close = source.partner(loop.open);
  bool below = source.is(test, name) && (source.is(test + 1, "<") || source.is(test + 1, "!="));
  bool by_one = close - step == 2 && ((source.is(step, "++") && source.is(step + 1, name)) ||
                                      (source.is(step, name) && source.is(step + 1, "++")));
  if (!below || !by_one) return {};
  auto touched = [&](std::size_t i) {  // declared, or changed
    if (!source.is(i, name) || source.is(i - 1, ".") || source.is(i - 1, "->")) return false;
    std::string_view behind = source.word(i + 1), before = source.word(i - 1);
    return one_of(behind, kAssignments) || behind == "++" || behind == "--" || before == "++" || before == "--";
  };
  for (std::size_t i = loop.body_first; i <= loop.body_last; ++i)
    if (touched(i)) return {};
  WalkingLoop found;
  found.keyword = loop.open - 1;
  if (!is_word(source, test + 2) || test + 3 != loop.semicolons[1]) return {};
  found.end = source.word(test + 2);
  for (std::size_t i = loop.open + 1; i < loop.semicolons[0]; ++i) {
    bool separates = source.is(i, ",") && source.around(i) == loop.open;
    if (touched(i) || separates) return {};
    if (!source.is(i, found.end) || !source.is(i + 1, "=")) continue;
    found.end_first = i + 2;
    found.end_last = loop.semicolons[0] - 1;
  }
  return found;
}

std::optional<CountingLoop> counting_loop_around(const SourceText& source, std::size_t token) {
  LoopHead head_found = loop_head_around(source, token);
  if (head_found.open == SourceText::kNone) return {};
  CountingLoop loop;
  std::size_t head = head_found.open;
  loop.keyword = head - 1;
  loop.body_first = head_found.body_first;
  loop.body_last = head_found.body_last;
  const std::vector<std::size_t>& parts = head_found.semicolons;
  // [T] i = begin ; i < end ; ++i
  std::size_t equals = head + 1;
  while (equals < parts[0] && !source.is(equals, "=")) ++equals;
  if (equals >= parts[0] || !is_word(source, equals - 1) || equals + 1 >= parts[0]) return {};
  loop.variable = source.word(equals - 1);
  if (equals - 1 > head + 1) loop.type = source.between(head + 1, equals - 2);
  std::size_t test = parts[0] + 1, step = parts[1] + 1, close = source.partner(head);
  bool below = source.is(test, loop.variable) && (source.is(test + 1, "<") || source.is(test + 1, "!=")) &&
               test + 2 < parts[1];
  bool by_one = close - step == 2 && ((source.is(step, "++") && source.is(step + 1, loop.variable)) ||
                                      (source.is(step, loop.variable) && source.is(step + 1, "++")));
  if (!below || !by_one) return {};
  loop.begin = source.between(equals + 1, parts[0] - 1);
  loop.begin_first = equals + 1;
  loop.begin_last = parts[0] - 1;
  loop.end_last = parts[1] - 1;
  loop.end = source.between(test + 2, parts[1] - 1);
  bool one_value = loop.begin.find(',') == std::string::npos && loop.end.find("&&") == std::string::npos &&
                   loop.end.find("||") == std::string::npos && loop.begin.find('(') == std::string::npos &&
                   loop.end.find('(') == std::string::npos;
  if (!one_value) return {};
  return loop;
}

bool can_be_cut(const SourceText& source, const CountingLoop& loop) {
  bool plain_type = !loop.type.empty() && loop.type.find_first_of("*&,(") == std::string::npos &&
                    loop.type.find("auto") == std::string::npos && !loop.type.starts_with("const ");
  if (!plain_type || loop.end.find_first_of("=?") != std::string::npos || loop.begin.find('=') != std::string::npos ||
      loop.end.find("++") != std::string::npos || loop.end.find("--") != std::string::npos)
    return false;
  // One line, as an insertion is.
  if (source.tokens()[loop.begin_first].line != source.tokens()[loop.begin_last].line) return false;
  static constexpr std::string_view kLeaves[] = {"break", "goto", "case", "default", "asm", "co_yield", "co_await"};
  for (std::size_t i = loop.body_first; i <= loop.body_last; ++i) {
    std::string_view word = source.word(i), behind = source.word(i + 1), before = source.word(i - 1);
    if (one_of(word, kLeaves) || (word == "&&" && is_word(source, i + 1) && before == "="))
      return false;  // and &&label
    bool label = behind == ":" && is_word(source, i) && (before == ";" || before == "{" || before == "}");
    if (label) return false;
    if (word != loop.variable || before == "." || before == "->") continue;
    bool changed =
        one_of(behind, kAssignments) || behind == "++" || behind == "--" || before == "++" || before == "--";
    bool given_away = before == "&" && !is_word(source, i - 2) && !source.is(i - 2, ")") && !source.is(i - 2, "]");
    if (changed || given_away) return false;
  }
  return true;
}

bool has_fixed_length(const CountingLoop& loop) {
  SourceText bounds(loop.begin + " " + loop.end);
  return std::all_of(bounds.tokens().begin(), bounds.tokens().end(), [](const Token& token) {
    if (token.kind != TokenKind::word) return true;
    bool k_name = token.text.size() > 1 && token.text[0] == 'k' && std::isupper(token.text[1]) != 0;
    return k_name || std::none_of(token.text.begin(), token.text.end(),
                                  [](unsigned char letter) { return std::islower(letter) != 0; });
  });
}

std::optional<Hoisted> hoisted(const SourceText& source, const CountingLoop& loop, const Access& access) {
  // ...[i], with i nowhere else
  if (!access.needs_ampersand || access.calls || access.changes) return {};
  std::size_t open = access.sign;
  if (!source.is(open, "[") || !source.is(open + 1, loop.variable) || !source.is(open + 2, "]")) return {};
  std::vector<std::string_view> names;
  for (std::size_t i = access.first; i < open; ++i) {
    if (source.is(i, loop.variable)) return {};
    if (is_word(source, i)) names.push_back(source.word(i));
  }
  SourceText bounds(loop.begin + " " + loop.end);
  for (const Token& token : bounds.tokens())
    if (token.kind == TokenKind::word) names.push_back(token.text);
  names.push_back(loop.variable);
  for (std::size_t i = loop.body_first; i <= loop.body_last; ++i) {
    if (!is_word(source, i) || std::find(names.begin(), names.end(), source.word(i)) == names.end()) continue;
    std::string_view behind = source.word(i + 1), before = source.word(i - 1);
    bool changed =
        one_of(behind, kAssignments) || behind == "++" || behind == "--" || before == "++" || before == "--";
    bool declared = is_word(source, i - 1) && before != "return" && before != "else" && before != "case";
    if (changed || declared) return {};
  }
  std::string base = source.between(access.first, open - 1);
  bool from_zero = loop.begin == "0" || loop.begin == "0u" || loop.begin == "0U" || loop.begin == "0UL";
  Hoisted result;
  result.address = "&" + base + "[" + loop.begin + "]";
  std::string count = from_zero ? loop.end : "(" + loop.end + ") - (" + loop.begin + ")";
  bool plain = from_zero && count.find(' ') == std::string::npos;
  result.is_pack = access.is_pack;
  result.size = (plain ? count : "(" + count + ")") + " * sizeof " + base + "[0]";
  return result;
}

}  // namespace hinterland::trace
