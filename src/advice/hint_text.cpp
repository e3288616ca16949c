#include "advice/hint_text.hpp"

#include <cctype>

namespace hinterland::trace {
namespace {

std::string options_text(Dialect dialect, const HintForm& form) {
  const char* yes = dialect == Dialect::c ? "1" : "true";
  std::string text;
  auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "." : ", .") + std::string(name) + " = " + value;
  };
  if (form.write) add("mut", yes);
  if (!form.size.empty()) add("size", form.size);
  if (form.read_ahead != 0) add("rdahead", std::to_string(form.read_ahead));
  if (form.priority != 0) add("ev_prio", std::to_string(form.priority));
  if (form.sequential) add("seq", yes);
  return text;
}

// The address as an argument of a macro: a comma outside brackets would begin another one.
std::string as_argument(const std::string& address) {
  int depth = 0;
  for (char letter : address) {
    if (letter == '(' || letter == '[') ++depth;
    if (letter == ')' || letter == ']') --depth;
    if ((letter == ',' || letter == '{') && depth == 0) return "(" + address + ")";
  }
  return address;
}

std::string indentation(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && (line[end] == ' ' || line[end] == '\t')) ++end;
  return std::string(line.substr(0, end));
}

// Where the expression may not be written twice, or its statement has no place before it: the address is taken once,
// hinted, and used. `a[i]` becomes `(*({ T* hl_at = &a[i]; hl_read(hl_at); hl_at; }))`.
PlacedHint in_place(const SourceText& source, Dialect dialect, const HintForm& form, const Access& access) {
  const Token &first = source.tokens()[access.first], &last = source.tokens()[access.last];
  bool star = access.sign == access.first && source.is(access.sign, "*");
  // An iterator is kept as it is.
  const char* type = dialect == Dialect::c ? "__auto_type" : star || access.whole_object ? "auto" : "auto*";
  std::string before = std::string("__extension__({ ") + type + " hl_at = " + (access.needs_ampersand ? "&" : "");
  std::string hint =
      hint_statement(dialect, form, (star || access.is_iterator) && dialect != Dialect::c ? "&*hl_at" : "hl_at");
  std::string after = "; " + hint + " hl_at; })";
  std::size_t operand = star ? access.address_first : access.first;
  std::string text = before + source.between(operand, access.last) + after;

  PlacedHint placed;
  placed.where = "in line " + std::to_string(first.line);
  placed.statement = access.whole_object ? text : "(*" + text + ")";
  std::size_t begin = source.tokens()[star ? operand : access.first].offset, end = last.end();
  if (star) placed.insertions.push_back({first.offset, "(", end});
  bool wraps = !access.whole_object;
  placed.insertions.push_back({begin, (wraps && !star ? "(*" : "") + before, end});
  placed.insertions.push_back({end, after + (wraps ? ")" : ""), first.offset});
  return placed;
}

// For each piece of memory that a system call is given.
std::string vector_statement(Dialect dialect, const HintForm& form, const Access& access) {
  HintForm piece = form;
  piece.sequential = false;
  piece.read_ahead = 0;
  piece.size = access.vector + "[hl_i].iov_len";
  return "for (unsigned long hl_i = 0; hl_i < (unsigned long)(" + access.vector_count + "); ++hl_i) " +
         hint_statement(dialect, piece, access.vector + "[hl_i].iov_base");
}

bool is_first_on_line(const SourceText& source, std::size_t token) {
  return source.first_token_of(source.tokens()[token].line) == token;
}

}  // namespace

std::string hint_statement(Dialect dialect, const HintForm& form, const std::string& address, bool pack) {
  if (pack) {
    std::string one = hint_statement(dialect, form, address);
    return "(" + one.substr(0, one.size() - 1) + ", ...);";
  }
  bool names = dialect == Dialect::cxx20;  // hl::read, not hl_read
  std::string argument = as_argument(address);
  if (form.needs_options() && dialect != Dialect::cxx) {
    std::string options = options_text(dialect, form);
    if (names) return "hl::hint(" + argument + ", {" + options + "});";
    return "hl_hint(" + argument + ", " + options + ");";
  }
  if (!form.size.empty() && can_say_size(dialect, form)) return "hl_prefetch(" + argument + ", " + form.size + ");";
  std::string function = std::string(form.sequential ? "seq_" : "") + (form.write ? "write" : "read");
  return (names ? "hl::" : "hl_") + function + "(" + argument + ");";
}

const char* header_of(Dialect dialect) {
  return dialect == Dialect::cxx20 ? "hinterland/hint.hpp" : "hinterland/hint.h";
}

PlacedHint place_hint(const SourceText& source, Dialect dialect, const HintForm& form, const Access& access,
                      bool in_place_only) {
  PlacedHint placed;
  Statement statement = statement_of(source, access.first);
  if (statement.standing == Standing::nowhere) {
    placed.why_not = "it does not stand in a function's body";
    return placed;
  }
  bool twice = !access.calls && !access.changes && !in_place_only && !changes_before(source, statement, access) &&
               (access.loads == 0 || (!statement.conditional && !statement.calls));
  if (access.is_pack && (statement.standing == Standing::in_place || !twice)) {
    placed.why_not = "it stands for several, and within an expression there is no hint for such";
    return placed;
  }
  bool within = statement.standing == Standing::in_place || !twice;
  if (within && !access.vector.empty()) {
    placed.why_not = "it stands for several, and there is no place for a statement before it";
    return placed;
  }
  if (within) return in_place(source, dialect, form, access);

  const Token& first = source.tokens()[statement.first];
  placed.statement = access.vector.empty() ? hint_statement(dialect, form, access.address(source), access.is_pack)
                                           : vector_statement(dialect, form, access);
  placed.where = "before line " + std::to_string(first.line);
  if (statement.standing == Standing::body) {
    placed.where += ", with braces around both";
    std::size_t end = source.tokens()[statement.last].end();
    placed.insertions = {{first.offset, "{ " + placed.statement + " ", end}, {end, " }", first.offset}};
  } else if (is_first_on_line(source, statement.first)) {
    std::string space = indentation(source.line_text(first.line));
    placed.insertions = {{source.line_start(first.line), space + placed.statement + source.newline()}};
  } else {
    placed.where = "in line " + std::to_string(first.line);
    placed.insertions = {{first.offset, placed.statement + " "}};
  }
  return placed;
}

PlacedHint place_before_loop(const SourceText& source, Dialect dialect, const HintForm& form,
                             const CountingLoop& loop, const Hoisted& hoisted) {
  PlacedHint placed;
  HintForm whole = form;
  whole.sequential = false;
  whole.read_ahead = 0;
  whole.size = hoisted.size;
  Statement statement = statement_of(source, loop.keyword);
  const Token& first = source.tokens()[loop.keyword];
  placed.statement = hint_statement(dialect, whole, hoisted.address, hoisted.is_pack);
  placed.where = "before the loop of line " + std::to_string(first.line);
  if (statement.standing != Standing::before || statement.first != loop.keyword ||
      !is_first_on_line(source, loop.keyword) || !can_say_size(dialect, whole)) {
    placed.why_not = "there is no place for it before the loop";
    return placed;
  }
  placed.insertions = {{source.line_start(first.line),
                        indentation(source.line_text(first.line)) + placed.statement + source.newline()}};
  return placed;
}

PlacedHint place_walk_before_loop(const SourceText& source, Dialect dialect, const HintForm& form,
                                  const Access& access) {
  PlacedHint placed;
  std::optional<WalkingLoop> loop = walking_loop_around(source, access);
  if (!loop) {
    placed.why_not = "there is no loop that it walks";
    return placed;
  }
  std::string pointer = source.between(access.address_first, access.address_last);
  auto whole_up_to = [&](const std::string& end) {
    HintForm whole = form;
    whole.sequential = false;
    whole.size = "(" + end + " > " + pointer + " ? " + end + " - " + pointer + " : 0) * sizeof *" + pointer;
    return can_say_size(dialect, whole) ? hint_statement(dialect, whole, pointer) : "";
  };
  int line = source.tokens()[loop->keyword].line;
  if (loop->end_first != 0) {
    std::size_t begin = source.tokens()[loop->end_first].offset, end = source.tokens()[loop->end_last].end();
    placed.statement = whole_up_to("hl_end");
    placed.where = "where the loop of line " + std::to_string(line) + " begins";
    const char* any = dialect == Dialect::c ? "__auto_type" : "auto";
    if (!placed.statement.empty())
      placed.insertions = {{begin, std::string("__extension__({ ") + any + " hl_end = ", end},
                           {end, "; " + placed.statement + " hl_end; })", begin}};
    return placed;
  }
  Statement statement = statement_of(source, loop->keyword);
  placed.statement = whole_up_to(loop->end);
  placed.where = "before the loop of line " + std::to_string(line);
  if (placed.statement.empty() || statement.standing != Standing::before || statement.first != loop->keyword ||
      !is_first_on_line(source, loop->keyword)) {
    placed.why_not = "there is no place for it before the loop";
    return placed;
  }
  placed.insertions = {
      {source.line_start(line), indentation(source.line_text(line)) + placed.statement + source.newline()}};
  return placed;
}

PlacedHint place_in_pieces(const SourceText& source, Dialect dialect, const HintForm& form, const CountingLoop& loop,
                           const Access& access) {
  PlacedHint placed;
  std::string base = source.between(access.first, access.sign - 1), element = "sizeof " + base + "[0]";
  HintForm piece = form;
  piece.sequential = false;
  piece.read_ahead = 0;
  piece.size = "(hl_to - hl_from) * " + element;
  if (!can_be_cut(source, loop) || !can_say_size(dialect, piece)) {
    placed.why_not = "the loop cannot be cut into pieces";
    return placed;
  }
  const Token& keyword = source.tokens()[loop.keyword];
  std::size_t body_end = source.tokens()[loop.body_last].end();
  std::string space = indentation(source.line_text(keyword.line)), line = source.newline() + space + "  ";
  std::string most = "(" + loop.type + ")(1 + 262144 / " + element + ")";
  std::string head = "for (" + loop.type + " hl_from = " + loop.begin + ", hl_to; hl_from < " + loop.end +
                     "; hl_from = hl_to) {" + line + "hl_to = " + loop.end + " - hl_from > " + most +
                     " ? hl_from + " + most + " : " + loop.end + ";" + line;
  placed.statement = hint_statement(dialect, piece, "&" + base + "[hl_from]", access.is_pack);
  placed.where = "for pieces of the loop of line " + std::to_string(keyword.line);
  const Token &begin = source.tokens()[loop.begin_first], &begin_end = source.tokens()[loop.begin_last];
  placed.insertions = {
      {keyword.offset, head, body_end, 0, true},
      {keyword.offset, placed.statement + line, body_end},
      {begin.offset, "hl_from", SourceText::kNone, begin_end.end() - begin.offset, true},
      {source.tokens()[loop.end_last].end(), " && " + loop.variable + " < hl_to", SourceText::kNone, 0, true},
      {body_end, source.newline() + space + "}", keyword.offset, 0, true}};
  return placed;
}

namespace {

// "#include" of "  # include <x>"; "" on other lines.
std::string directive_of(std::string_view line) {
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string_view::npos || line[at] != '#') return {};
  at = line.find_first_not_of(" \t", at + 1);
  std::string word;
  for (; at < line.size() && std::isalpha(static_cast<unsigned char>(line[at])) != 0; ++at) word += line[at];
  return word;
}

}  // namespace

std::vector<Insertion> include_header(const SourceText& source, Dialect dialect, int before_line) {
  const char* wanted = header_of(dialect);
  int depth = 0, guard = 0, place = 0;  // behind this line
  bool anything = false, included = false;
  for (int line = 1; line <= source.lines() && line < before_line; ++line) {
    std::string word = directive_of(source.line_text(line));
    if (word.empty()) continue;
    std::string_view text = source.line_text(line);
    // The C++ header includes the other.
    for (const char* there : {"hinterland/hint.hpp", wanted})
      if (word == "include" && text.find(there) != std::string_view::npos) return {};
    if (word.starts_with("if")) {
      ++depth;
      // Around a whole header: no condition.
      if (!anything && source.first_token_of(line) == 0 && word == "ifndef") guard = depth;
    }
    anything = true;  // the first directive of all, or it is a condition like others
    if (word == "endif") --depth;
    if (word.starts_with("if") || word == "endif" || depth != guard) continue;
    while (source.line_text(line).ends_with('\\') && line < source.lines()) ++line;
    std::size_t token = source.first_token_of(line + 1);
    bool outside =
        token >= source.tokens().size() || (source.around(token) == SourceText::kNone && !source.is(token, "}"));
    // Behind the last #include; and behind `#pragma once`, the guard and feature macros where there is none.
    if (word == "include" && outside) place = line, included = true;
    if ((word == "pragma" || word == "define") && !included) place = line;
  }
  std::string text = std::string("#include <") + wanted + ">" + source.newline();
  std::size_t offset = place == 0 ? 0 : place < source.lines() ? source.line_start(place + 1) : source.text().size();
  return {{offset, text}};
}

}  // namespace hinterland::trace
