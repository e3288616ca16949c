// What a function was given for a parameter, found in the text of its callers; and loops that a pointer walks.
#include "advice/caller.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "advice/hint_text.hpp"
#include "advice/patch.hpp"

namespace hinterland::trace {
namespace {

class CallerTest : public ::testing::Test {
 protected:
  ~CallerTest() override { std::remove(path_.c_str()); }

  // The accesses of line 1 of the text are in a function that is called in the lines given, from the innermost on.
  std::string given(const std::string& text, std::initializer_list<int> calls, std::size_t access = 0) {
    std::ofstream(path_) << text;
    SourceTree sources("");
    const SourceText* source = sources.read(path_);
    if (source == nullptr) return "not read";
    std::vector<CallPlace> way{{path_, 1, 1}};
    for (int line : calls) way.push_back({path_, line, 1});
    std::vector<Access> accesses = accesses_on(*source, 1);
    if (accesses.size() <= access) return "no access";
    std::optional<GivenBy> result = given_by_caller(sources, *source, accesses[access], way);
    if (!result) return "";
    return result->access.address(*result->source) + " in " + std::to_string(result->line) + " by " +
           std::to_string(result->depth);
  }

  // Tests of one process each run side by side.
  std::string path_ = ::testing::TempDir() + "hinterland-caller-test-" + std::to_string(getpid()) + ".cpp";
};

TEST_F(CallerTest, AnElementOfARow) {
  EXPECT_EQ(given("float f(const P& a, const P& b) { return a[d] * b[d]; }\n"
                  "void g() {\n  use(f(points[i], other[k].x));\n}\n",
                  {3}),
            "&points[i] in 3 by 1");
  EXPECT_EQ(given("float f(const P& a, const P& b) { return a[d] * b[d]; }\n"
                  "void g() {\n  use(f(points[i], other[k].x));\n}\n",
                  {3}, 1),
            "&other[k].x in 3 by 1");
}

TEST_F(CallerTest, ThroughCallersAndReferences) {
  EXPECT_EQ(given("float f(const P& a) { return a[d]; }\n"
                  "float g(const P& point, const C& c) {\n  return f(point);\n}\n"
                  "void S::h(Part& part) {\n  const P& it = points_[i];\n  part.sum += g(it, c);\n}\n",
                  {3, 7}),
            "&points_[i] in 6 by 2");
  EXPECT_EQ(given("int f(const int* p) { return p[0]; }\nvoid g() {\n  f(&rows[i]);\n}\n", {3}),
            "&rows[i] in 3 by 1");
}

TEST_F(CallerTest, NothingWhereThereIsADoubt) {
  // A value; a pointer that moves, or that is an expression; a name that is used twice; another function on the line.
  EXPECT_EQ(given("int f(P a) { return a[d]; }\nvoid g() {\n  f(points[i]);\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const int* p) { int s = p[0]; ++p; return s; }\nvoid g() {\n  f(&rows[i]);\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const int* p) { return p[0]; }\nvoid g() {\n  f(rows + i);\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const P& a) { { P& a = b; use(a[1]); } return 0; }\nvoid g() {\n  f(points[i]);\n}\n", {3}),
            "");
  EXPECT_EQ(given("int f(const P& a) { return a[d]; }\nvoid g() {\n  h(points[i]);\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const P& a) { return a[d]; }\nvoid g() {\n  f(points[next()]);\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const P& a) { return a[d]; }\nvoid g() {\n  f(make());\n}\n", {3}), "");
  EXPECT_EQ(given("int f(const P& a) { return a[d]; }\n", {99}), "");
}

// The source with a sequential hint for the last access of its line 3.
std::string walked(const std::string& text) {
  SourceText source(text);
  HintForm form;
  form.sequential = true;
  PlacedHint placed = place_walk_before_loop(source, Dialect::cxx20, form, accesses_on(source, 3).back());
  return placed.insertions.empty() ? placed.why_not : with_insertions(source, placed.insertions);
}

TEST(WalkingLoop, GetsAHintForAllOfIt) {
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (; row < e; ++row) sum += *row;\n}\n"),
            "void f() {\n  float sum = 0;\n  hl::hint(row, {.size = (e > row ? e - row : 0) * sizeof *row});\n"
            "  for (; row < e; ++row) sum += *row;\n}\n");
  // Where it declares its end, which is evaluated once as before.
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (const V* e = row + n(); row != e; row++) sum += *row;\n}\n"),
            "void f() {\n  float sum = 0;\n  for (const V* e = __extension__({ auto hl_end = row + n(); "
            "hl::hint(row, {.size = (hl_end > row ? hl_end - row : 0) * sizeof *row}); hl_end; }); row != e; row++) "
            "sum += *row;\n}\n");
}

TEST(WalkingLoop, IsNoOther) {
  constexpr const char* kNone = "there is no loop that it walks";
  // It declares its pointer; moves it otherwise; declares something else besides; is a body itself.
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (const V* row = b; row < e; ++row) sum += *row;\n}\n"),
            kNone);
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (; row < e; ++row) sum += *row, row += 2, *row;\n}\n"),
            kNone);
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (; row < e; row += 2) sum += *row;\n}\n"), kNone);
  EXPECT_EQ(walked("void f() {\n  float sum = 0;\n  for (V *e = a, *d = b; row < e; ++row) sum += *row;\n}\n"),
            kNone);
  EXPECT_EQ(walked("void f() {\n  while (row < e)\n  sum += *row;\n}\n"), kNone);
}

}  // namespace
}  // namespace hinterland::trace
