// From source text to hints: which expression a fault at a line and column belongs to, where its hint goes, and what
// the source is then. Each case is a piece of C or C++ and what must come out of it.
#include <gtest/gtest.h>

#include <string>

#include "advice/hint_text.hpp"
#include "advice/patch.hpp"

namespace hinterland::trace {
namespace {

// The address of what faulted at the last `^` under a line of the source; "?" before it when not sure.
struct Marked {
  std::string source;
  int line = 0, column = 0;
};

// `text` has one line with nothing but a `^`, which marks a column of the line before.
Marked marked(const std::string& text) {
  Marked result;
  std::size_t caret = text.find('^'), start = text.rfind('\n', caret) + 1;
  result.column = static_cast<int>(caret - start) + 1;
  result.source = text.substr(0, start) + text.substr(std::min(text.find('\n', caret) + 1, text.size()));
  result.line = static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
  return result;
}

std::string touched(const std::string& text, bool write = false) {
  Marked mark = marked(text);
  SourceText source(mark.source);
  Chosen chosen = choose_access(source, mark.line, mark.column, write);
  std::string out = chosen.sure ? "" : "?";
  for (const Access& access : chosen.accesses) out += (out.size() > 1 ? " " : "") + access.address(source);
  return out;
}

// The source with the hint in it.
std::string hinted(const std::string& text, const HintForm& form = {}, Dialect dialect = Dialect::c,
                   bool write = false, bool in_place = false) {
  Marked mark = marked(text);
  SourceText source(mark.source);
  Chosen chosen = choose_access(source, mark.line, mark.column, write);
  if (chosen.accesses.empty()) return "none";
  PlacedHint placed = place_hint(source, dialect, form, chosen.accesses.front(), in_place);
  return placed.insertions.empty() ? placed.why_not : with_insertions(source, placed.insertions);
}

HintForm writing() {
  HintForm form;
  form.write = true;
  return form;
}

TEST(SourceText, TokensAndBrackets) {
  SourceText source(
      "int a = b[1]; // ]\n#define X {\n/* ( */ char c = '{'; const char* d = \"(\" R\"x(])\")x\"; 0x1p+3;");
  std::string all;
  for (const Token& token : source.tokens()) all += std::string(token.text) + " ";
  EXPECT_EQ(all, "int a = b [ 1 ] ; char c = '{' ; const char * d = \"(\" R\"x(])\")x\" ; 0x1p+3 ; ");
  EXPECT_EQ(source.partner(4), 6u);
  EXPECT_EQ(source.around(5), 4u);
  EXPECT_EQ(source.tokens()[8].line, 3);
  EXPECT_EQ(source.tokens()[8].column, 9);
}

TEST(SourceText, BracketsThatDoNotFit) {
  SourceText source("#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\nz(); }");
  EXPECT_EQ(source.partner(source.first_token_of(2) + 4), SourceText::kNone);
  for (const char* torn : {"(", ")", "{[(", "}])", "\"", "'", "/*", "//", "#", "\\", "R\"(", "0x", "a(\n#x"}) {
    SourceText text(torn);
    for (std::size_t i = 0; i < text.tokens().size(); ++i) text.around(text.partner(i));
    accesses_on(text, 1);
  }
}

// Where GCC and Clang put the columns of loads and stores.
TEST(Access, IsTheOneAtTheColumn) {
  EXPECT_EQ(touched("void f() { sum += a[b[i]];\n"
                    "                   ^\n}"),
            "&a[b[i]]");
  EXPECT_EQ(touched("void f() { sum += a[b[i]];\n"
                    "                     ^\n}"),
            "&b[i]");
  EXPECT_EQ(touched("void f() { sum += a[b[i]];\n"
                    "               ^\n}"),
            "&a[b[i]]");  // added from memory: at the operator
  EXPECT_EQ(touched("void f() { while (n && n->key != k) n = n->next;\n"
                    "                     ^\n}"),
            "&n->key");
  EXPECT_EQ(touched("void f() { while (n && n->key != k) n = n->next;\n"
                    "                                         ^\n}"),
            "&n->next");
  EXPECT_EQ(touched("void f() { x = p->next->key.low;\n"
                    "                       ^\n}"),
            "&p->next->key.low");
  EXPECT_EQ(touched("void f() { x = p->next->key.low;\n"
                    "                         ^\n}"),
            "&p->next->key.low");  // Clang: at the member
  EXPECT_EQ(touched("void f() { x = y + *(volatile long*)(page + 64);\n"
                    "                   ^\n}"),
            "(volatile long*)(page + 64)");
  EXPECT_EQ(touched("void f() { x = (*p).member;\n"
                    "               ^\n}"),
            "&(*p).member");
}

TEST(Access, OfAStoreIsWhatIsWritten) {
  const char* copy =
      "void f() { a[i] = b[j];\n"
      "                ^\n}";
  EXPECT_EQ(touched(copy, true), "&a[i]");
  EXPECT_EQ(touched(copy, false), "&b[j]");
  EXPECT_EQ(touched("void f() { *to++ = *from++;\n"
                    "                 ^\n}",
                    true),
            "to");
  EXPECT_EQ(touched("void f() { p->count++;\n"
                    "                   ^\n}",
                    true),
            "&p->count");
}

TEST(Access, OfACallOfMemcpy) {
  const char* copy =
      "void f() { std::memcpy(to->data, &from[i], n * 2);\n"
      "                      ^\n}";
  EXPECT_EQ(touched(copy, false), "&from[i]");
  EXPECT_EQ(touched(copy, true), "to->data");
  Marked mark = marked(copy);
  SourceText source(mark.source);
  EXPECT_EQ(choose_access(source, mark.line, mark.column, false).accesses[0].size, "n * 2");
  EXPECT_EQ(touched("void f() { memcpy(a, b, next());\n"
                    "           ^\n}"),
            "b");
}

TEST(Access, NotSureSaysSo) {
  EXPECT_EQ(touched("void f() { g(a[i], b[j]);\n"
                    "           ^\n}"),
            "?&a[i] &b[j]");
  EXPECT_EQ(touched("void f() { return x + y;\n"
                    "                    ^\n}"),
            "?");
  EXPECT_EQ(touched("void f() { n = sizeof p->x + sizeof(*q); int v[4]; r = &a[i]; }\n"
                    "           ^\n}"),
            "?");
  SourceText short_file("int a;\n");
  EXPECT_NE(choose_access(short_file, 77, 1, false).why.find("no such line"), std::string::npos);
}

TEST(Hint, StandsBeforeItsStatement) {
  EXPECT_EQ(hinted("void f() {\n"
                   "  sum += a[b[i]];\n"
                   "          ^\n}"),
            "void f() {\n"
            "  hl_read(&a[b[i]]);\n"
            "  sum += a[b[i]];\n}");
  EXPECT_EQ(hinted("void f() {\r\n"
                   "\tif (p->x) {\n"
                   "\t     ^\n\t}\n}"),
            "void f() {\r\n"
            "\thl_read(&p->x);\r\n"
            "\tif (p->x) {\n\t}\n}");
  EXPECT_EQ(hinted("void f() { g(); return p->x; }\n"
                   "                        ^\n"),
            "void f() { g(); hl_read(&p->x); return p->x; }\n");
  // A statement of several lines.
  EXPECT_EQ(hinted("void f() {\n"
                   "  g(1,\n"
                   "    p->x);\n"
                   "     ^\n}"),
            "void f() {\n"
            "  hl_read(&p->x);\n"
            "  g(1,\n"
            "    p->x);\n}");
}

TEST(Hint, OfABodyGetsBraces) {
  EXPECT_EQ(hinted("void f() {\n"
                   "  for (i = 0; i < n; ++i)\n"
                   "    a[b[i]] = 3;\n"
                   "     ^\n}",
                   writing(), Dialect::c, true),
            "void f() {\n"
            "  for (i = 0; i < n; ++i)\n"
            "    { hl_write(&a[b[i]]); a[b[i]] = 3; }\n}");
  EXPECT_EQ(hinted("void f() { if (x) y(); else z = p->x; }\n"
                   "                                 ^\n"),
            "void f() { if (x) y(); else { hl_read(&p->x); z = p->x; } }\n");
}

// Where the line may not be reached, or its parts not be evaluated twice, only the expression itself is certain.
TEST(Hint, StaysInTheExpressionWhereItMust) {
  const std::string in = "(*__extension__({ __auto_type hl_at = &", out = "; hl_read(hl_at); hl_at; }))";
  EXPECT_EQ(hinted("void f() { while (n && n->key != k) g(); }\n"
                   "                        ^\n"),
            "void f() { while (n && " + in + "n->key" + out + " != k) g(); }\n");
  EXPECT_EQ(hinted("void f() { x = a[next(s)]; }\n"
                   "                ^\n"),
            "void f() { x = " + in + "a[next(s)]" + out + "; }\n");
  EXPECT_EQ(hinted("void f() { if (x) ; else if (p->x) ; }\n"
                   "                              ^\n"),
            "void f() { if (x) ; else if (" + in + "p->x" + out + ") ; }\n");
  EXPECT_EQ(hinted("void f() { p = q, x = p->x; }\n"
                   "                        ^\n"),
            "void f() { p = q, x = " + in + "p->x" + out + "; }\n");
  EXPECT_EQ(hinted("void f() { x = p != 0 && p->next->x; }\n"
                   "                                ^\n"),
            "void f() { x = p != 0 && " + in + "p->next->x" + out + "; }\n");
  EXPECT_EQ(hinted("void f() { x = *p++; }\n"
                   "               ^\n"),
            "void f() { hl_read(p); x = *p++; }\n");
  EXPECT_EQ(hinted("void f() { while (*p++) ; }\n"
                   "                  ^\n"),
            "void f() { while ((*__extension__({ __auto_type hl_at = p++; hl_read(hl_at); hl_at; }))) ; }\n");
  // ... and not where a plain address does no harm.
  EXPECT_EQ(hinted("void f() { x = p != 0 && p->x; }\n"
                   "                          ^\n"),
            "void f() { hl_read(&p->x); x = p != 0 && p->x; }\n");
}

TEST(Hint, OutsideOfFunctionsHasNoPlace) {
  EXPECT_EQ(hinted("struct A { A(B* b) : x(b->y) {} int x; };\n"
                   "                        ^\n"),
            "it does not stand in a function's body");
  EXPECT_EQ(hinted("int x = p->y;\n"
                   "         ^\n"),
            "it does not stand in a function's body");
}

TEST(Hint, InLambdasAndInitialisers) {
  EXPECT_EQ(hinted("void f() { go([&](int i) { return a[i]; }); }\n"
                   "                                   ^\n",
                   {}, Dialect::cxx20),
            "void f() { go([&](int i) { hl::read(&a[i]); return a[i]; }); }\n");
  EXPECT_EQ(hinted("void f() { int v[] = {1, a[i]}; }\n"
                   "                          ^\n"),
            "void f() { hl_read(&a[i]); int v[] = {1, a[i]}; }\n");
  EXPECT_EQ(hinted("void f() { g((struct v){1, a[i]}); }\n"
                   "                            ^\n"),
            "void f() { hl_read(&a[i]); g((struct v){1, a[i]}); }\n");
}

TEST(Hint, SaysWhatTheDialectCan) {
  HintForm form{.write = true, .sequential = false, .read_ahead = 8, .priority = 15, .size = "n"};
  EXPECT_EQ(hint_statement(Dialect::c, form, "p"), "hl_hint(p, .mut = 1, .size = n, .rdahead = 8, .ev_prio = 15);");
  EXPECT_EQ(hint_statement(Dialect::cxx20, form, "p"),
            "hl::hint(p, {.mut = true, .size = n, .rdahead = 8, .ev_prio = 15});");
  EXPECT_EQ(hint_statement(Dialect::cxx, form, "p"), "hl_write(p);");
  HintForm size;
  size.size = "n";
  EXPECT_EQ(hint_statement(Dialect::cxx, size, "p"), "hl_prefetch(p, n);");
  HintForm order;
  order.sequential = true;
  EXPECT_EQ(hint_statement(Dialect::cxx20, order, "&a[i]"), "hl::seq_read(&a[i]);");
  EXPECT_EQ(hint_statement(Dialect::c, order, "&a<1, 2>"), "hl_seq_read((&a<1, 2>));");
}

std::string before_loop(const std::string& text) {
  Marked mark = marked(text);
  SourceText source(mark.source);
  Access access = choose_access(source, mark.line, mark.column, false).accesses.front();
  std::optional<CountingLoop> loop = counting_loop_around(source, access.first);
  if (!loop) return "no loop";
  std::optional<Hoisted> whole = hoisted(source, *loop, access);
  if (!whole) return "not hoisted";
  return place_before_loop(source, Dialect::c, {}, *loop, *whole).statement;
}

TEST(Hint, BeforeALoopThatCounts) {
  EXPECT_EQ(before_loop("void f() {\n  for (size_t i = 0; i < n; ++i)\n    sum += row[i];\n"
                        "              ^\n}"),
            "hl_hint(&row[0], .size = n * sizeof row[0]);");
  EXPECT_EQ(before_loop("void f() {\n  for (int i = s->from; i < s->to; i++) {\n    sum += s->row[i];\n"
                        "                 ^\n}\n}"),
            "hl_hint(&s->row[s->from], .size = ((s->to) - (s->from)) * sizeof s->row[0]);");
  for (const char* other :
       {"void f() {\n  for (int i = 0; i < n; i += 2)\n    sum += row[i];\n              ^\n}",
        "void f() {\n  for (int i = 0; i < n; ++i)\n    sum += row[i + 1];\n              ^\n}",
        "void f() {\n  for (int i = 0; i < n; ++i) {\n    sum += row[i];\n              ^\n  row++; }\n}",
        "void f() {\n  for (int i = 0; i < n; ++i) {\n    sum += row[i];\n              ^\n  --n; }\n}",
        "void f() {\n  for (int i = 0; i < next(); ++i)\n    sum += row[i];\n              ^\n}",
        "void f() {\n  while (i < n)\n    sum += row[i];\n              ^\n}"})
    EXPECT_TRUE(before_loop(other) == "no loop" || before_loop(other) == "not hoisted") << other;
}

std::string in_pieces(const std::string& text, Dialect dialect = Dialect::cxx20) {
  Marked mark = marked(text);
  SourceText source(mark.source);
  std::vector<Insertion> insertions;
  for (const Access& access : accesses_on(source, mark.line)) {
    std::optional<CountingLoop> loop = counting_loop_around(source, access.first);
    if (!loop || !hoisted(source, *loop, access)) continue;
    PlacedHint placed = place_in_pieces(source, dialect, {}, *loop, access);
    if (placed.insertions.empty()) return placed.why_not;
    for (const Insertion& each : placed.insertions) {
      bool once = each.shared && std::any_of(insertions.begin(), insertions.end(), [&](const Insertion& other) {
                    return other.shared && other.offset == each.offset;
                  });
      if (!once) insertions.push_back(each);
    }
  }
  return with_insertions(source, insertions);
}

TEST(Hint, ForPiecesOfALoop) {
  EXPECT_EQ(
      in_pieces("void f() {\n  for (int i = 3; i < n; ++i) sum += a[i] * b[i];\n"
                "                                      ^\n}\n"),
      "void f() {\n"
      "  for (int hl_from = 3, hl_to; hl_from < n; hl_from = hl_to) {\n"
      "    hl_to = n - hl_from > (int)(1 + 262144 / sizeof a[0]) ? hl_from + (int)(1 + 262144 / sizeof a[0]) : n;\n"
      "    hl::hint(&a[hl_from], {.size = (hl_to - hl_from) * sizeof a[0]});\n"
      "    hl::hint(&b[hl_from], {.size = (hl_to - hl_from) * sizeof b[0]});\n"
      "    for (int i = hl_from; i < n && i < hl_to; ++i) sum += a[i] * b[i];\n"
      "  }\n}\n");
  EXPECT_EQ(in_pieces("void f() {\n  for (size_t i = 0; i < n; i++) {\n    to[i] = of(from[i]...);\n"
                      "                ^\n  }\n}\n"),
            "void f() {\n"
            "  for (size_t hl_from = 0, hl_to; hl_from < n; hl_from = hl_to) {\n"
            "    hl_to = n - hl_from > (size_t)(1 + 262144 / sizeof to[0]) ? hl_from + (size_t)(1 + 262144 / sizeof "
            "to[0]) : "
            "n;\n"
            "    hl::hint(&to[hl_from], {.size = (hl_to - hl_from) * sizeof to[0]});\n"
            "    (hl::hint(&from[hl_from], {.size = (hl_to - hl_from) * sizeof from[0]}), ...);\n"
            "    for (size_t i = hl_from; i < n && i < hl_to; i++) {\n    to[i] = of(from[i]...);\n  }\n  }\n}\n");
}

TEST(Hint, LoopsThatAreNotCut) {
  for (const char* body : {"if (!a[i]) break;", "if (a[i]) goto out;", "a[i] = g(&i);", "x: a[i] = 0;",
                           "switch (a[i]) { default: ; }"}) {
    std::string line = std::string("  for (int i = 0; i < n; ++i) { ") + body + " }\n";
    EXPECT_EQ(in_pieces("void f() {\n" + line + "        ^\n}\n"), "the loop cannot be cut into pieces") << body;
  }
  for (const char* head : {"i = 0; i < n; ++i", "auto i = 0; i < n; ++i", "char* i = 0; i < n; ++i"}) {
    std::string line = std::string("  for (") + head + ") a[i] = 0;\n";
    EXPECT_EQ(in_pieces("void f() {\n" + line + "        ^\n}\n"), "the loop cannot be cut into pieces") << head;
  }
}

TEST(Access, OfNamesThatTouchMemory) {
  SourceText source("void f() { first = g(second.x, third); }\n");
  EXPECT_TRUE(accesses_on(source, 1).empty());
  auto touches = [](std::string_view name) {
    return name == "first" || name == "second" ? NameKind::touches : NameKind::other;
  };
  Chosen write = choose_access(source, 1, 18, true, touches), read = choose_access(source, 1, 24, false, touches);
  ASSERT_EQ(write.accesses.size(), 1u);
  EXPECT_EQ(write.accesses[0].address(source), "&first");
  ASSERT_EQ(read.accesses.size(), 1u);
  EXPECT_EQ(read.accesses[0].address(source), "&second.x");
}

TEST(Access, OfPointersThatMacrosAreGiven) {
  SourceText source("void f() { count_up(it); g(it->x + it, 2 * it); (it); h(static_cast<T*>(it)); }\n");
  auto points = [](std::string_view name) { return name == "it" ? NameKind::points : NameKind::other; };
  std::vector<std::string> found;
  for (const Access& each : accesses_on(source, 1, points)) found.push_back(each.address(source));
  EXPECT_EQ(found, (std::vector<std::string>{"it", "&it->x", "it"}));
}

TEST(Access, OfAlgorithms) {
  SourceText source(
      "void f() { std::sort(begin, end); std::copy_n(from + at, size, to + at); v.sort(a, b); g(std::sort(v())); "
      "}\n");
  std::vector<std::string> found;
  for (const Access& each : accesses_on(source, 1))
    found.push_back(each.address(source) + ", " + each.size + (each.writes ? ", written" : ""));
  EXPECT_EQ(found, (std::vector<std::string>{"&*begin, ((end) - (begin)) * sizeof *(begin), written",
                                             "&*(from + at), (size) * sizeof *(from + at)",
                                             "&*(to + at), (size) * sizeof *(to + at), written"}));
}

TEST(Access, OfSystemCallsThatAreGivenAVector) {
  EXPECT_EQ(hinted("void f() {\n"
                   "  n = c->sendmsg(c, &msg, 0);\n"
                   "      ^\n}"),
            "void f() {\n"
            "  for (unsigned long hl_i = 0; hl_i < (unsigned long)((&msg)->msg_iovlen); ++hl_i) "
            "hl_hint((&msg)->msg_iov[hl_i].iov_base, .size = (&msg)->msg_iov[hl_i].iov_len);\n"
            "  n = c->sendmsg(c, &msg, 0);\n}");
  EXPECT_EQ(hinted("void f() {\n"
                   "  if (x) n = ::readv(file, parts + 1, count);\n"
                   "               ^\n}",
                   writing(), Dialect::cxx20, true),
            "void f() {\n"
            "  if (x) { for (unsigned long hl_i = 0; hl_i < (unsigned long)(count); ++hl_i) "
            "hl::hint((parts + 1)[hl_i].iov_base, {.mut = true, .size = (parts + 1)[hl_i].iov_len}); "
            "n = ::readv(file, parts + 1, count); }\n}");
  // Within an expression there is no place for a loop; and what has effects is not named twice.
  EXPECT_EQ(hinted("void f() {\n"
                   "  while (writev(file, parts, 2) > 0) g();\n"
                   "         ^\n}"),
            "it stands for several, and there is no place for a statement before it");
  EXPECT_EQ(hinted("void f() {\n"
                   "  writev(file, next++, 2);\n"
                   "  ^\n}"),
            "none");
}

std::string with_header(const std::string& text, int before_line = 1000, Dialect dialect = Dialect::c) {
  SourceText source(text);
  return with_insertions(source, include_header(source, dialect, before_line));
}

TEST(Header, GoesBehindTheOthers) {
  EXPECT_EQ(
      with_header("#define _GNU_SOURCE\n#include <a.h>\n#if X\n#include <b.h>\n#endif\nint x;\n"),
      "#define _GNU_SOURCE\n#include <a.h>\n#include <hinterland/hint.h>\n#if X\n#include <b.h>\n#endif\nint x;\n");
  EXPECT_EQ(with_header("#ifndef A_H\n#define A_H\nint x;\n#endif\n"),
            "#ifndef A_H\n#define A_H\n#include <hinterland/hint.h>\nint x;\n#endif\n");
  EXPECT_EQ(
      with_header(
          "#include <a.h>\n#ifndef B\n#define B\n#endif\n#include <b.h>\n#ifdef C\n#include <c.h>\n#endif\nint x;\n"),
      "#include <a.h>\n#ifndef B\n#define B\n#endif\n#include <b.h>\n#include <hinterland/hint.h>\n#ifdef "
      "C\n#include "
      "<c.h>\n#endif\nint x;\n");
  EXPECT_EQ(with_header("// head\nint x;"), "#include <hinterland/hint.h>\n// head\nint x;");
  EXPECT_EQ(with_header("#include <a.h>\nint x;\n#include \"tail.inc\"\n", 2),
            "#include <a.h>\n#include <hinterland/hint.h>\nint x;\n#include \"tail.inc\"\n");
  EXPECT_EQ(with_header("#include <a.h>\nnamespace n {\n#include \"b.inc\"\n}\n"),
            "#include <a.h>\n#include <hinterland/hint.h>\nnamespace n {\n#include \"b.inc\"\n}\n");
  for (const char* there : {"#include <hinterland/hint.h>\n", "#include \"hinterland/hint.hpp\"\n"})
    EXPECT_EQ(with_header(there), there);
  EXPECT_EQ(with_header("#include <hinterland/hint.h>\n", 9, Dialect::cxx20),
            "#include <hinterland/hint.h>\n#include <hinterland/hint.hpp>\n");
}

TEST(Patch, NestsWhatBeginsOrEndsAtOnePlace) {
  SourceText source("void f() { x = a[b[i]]; }\n");
  std::vector<Insertion> insertions;
  for (int column : {17, 19}) {  // the inner one last, and first
    Chosen chosen = choose_access(source, 1, column, false);
    for (Insertion& each : place_hint(source, Dialect::c, {}, chosen.accesses[0], true).insertions)
      insertions.push_back(each);
  }
  const std::string in = "(*__extension__({ __auto_type hl_at = &", out = "; hl_read(hl_at); hl_at; }))";
  EXPECT_EQ(with_insertions(source, insertions),
            "void f() { x = " + in + "a[" + in + "b[i]" + out + "]" + out + "; }\n");
  std::rotate(insertions.begin(), insertions.begin() + 2, insertions.end());
  EXPECT_EQ(with_insertions(source, insertions),
            "void f() { x = " + in + "a[" + in + "b[i]" + out + "]" + out + "; }\n");
}

TEST(Patch, IsAUnifiedDiff) {
  std::string text;
  for (int i = 1; i <= 20; ++i) text += std::to_string(i) + "\n";
  SourceText source(text);
  std::vector<Insertion> insertions = {{source.line_start(15), "new\n"}, {source.line_start(2), "two"}};
  EXPECT_EQ(unified_diff("x.c", source, insertions),
            "--- a/x.c\n+++ b/x.c\n"
            "@@ -1,5 +1,5 @@\n 1\n-2\n+two2\n 3\n 4\n 5\n"
            "@@ -12,7 +12,8 @@\n 12\n 13\n 14\n+new\n 15\n 16\n 17\n 18\n");
  EXPECT_EQ(unified_diff("x.c", source, {}), "");
  SourceText one("a");
  EXPECT_EQ(unified_diff("x.c", one, {{0, "b\n"}}),
            "--- a/x.c\n+++ b/x.c\n@@ -1,1 +1,2 @@\n+b\n a\n\\ No newline at end of file\n");
}

}  // namespace
}  // namespace hinterland::trace
