// dataframe.hpp without a runtime: columns as vectors, blocked sorting and spreading with blocks of a few rows, and
// what is said of arguments that make no sense. Operations against a model, with far memory too:
// pager_dataframe_test.
#include "hinterland/dataframe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using hl::far::aggregate;
using hl::far::column;
using hl::far::compare;
using hl::far::dataframe;
using hl::far::text;

template <typename T>
std::vector<T> all_of(const column<T>& values) {
  return {values.begin(), values.end()};
}
std::vector<std::string> all_of(const column<text>& values) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < values.size(); ++i) all.emplace_back(values[i]);
  return all;
}

TEST(Column, IsAVector) {
  static_assert(std::contiguous_iterator<column<int>::iterator>);
  column<std::uint64_t> values;
  std::vector<std::uint64_t> model;
  std::mt19937_64 random(5);
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t what = random() % 100;
    if (what < 90)
      values.push_back(what), model.push_back(what);
    else if (what < 98 && !model.empty())
      values.pop_back(), model.pop_back();
    else if (what < 99)
      values.resize(model.size() + what), model.resize(model.size() + what);
    else if (random() % 200 == 0)
      values.resize(model.size() / 2, 9), model.resize(model.size() / 2, 9);
  }
  EXPECT_EQ(all_of(values), model);
  values.resize(values.size() + 3, 8);
  EXPECT_EQ(values.back(), 8u);
  values.push_back(values.front());
  EXPECT_EQ(values.back(), model.front());
  column<std::uint64_t> moved = std::move(values);
  EXPECT_TRUE(values.empty());  // as a moved std::vector
  EXPECT_EQ(values.data(), nullptr);
  values = moved.copy();
  values.front() = 77;
  EXPECT_EQ(moved.front(), model.front());
  EXPECT_EQ(values.at(0), 77u);
  EXPECT_THROW(static_cast<void>(values.at(values.size())), std::out_of_range);
  EXPECT_THROW(values.reserve(std::numeric_limits<std::size_t>::max() / 8), std::length_error);
  values.clear();
  values.resize(1000);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0u), 1000) << "elements that come anew are zero";
  struct trip {
    double price;
    char name[11];
  };
  column<trip> trips(3, trip{1.5, "a"});
  EXPECT_EQ(trips[2].price, 1.5);
  EXPECT_TRUE(column<double>().empty());
}

TEST(Column, TextSharesItsStringsUntilOneGrows) {
  column<text> flags{"N", "Y", "N", ""};
  column<text> copy = flags.copy();
  copy.push_back("new");
  flags.push_back("other");
  EXPECT_EQ(all_of(flags), (std::vector<std::string>{"N", "Y", "N", "", "other"}));
  EXPECT_EQ(all_of(copy), (std::vector<std::string>{"N", "Y", "N", "", "new"}));
  EXPECT_EQ(flags.codes()[0], flags.codes()[2]);
  EXPECT_FALSE(flags.code_of("new"));
  EXPECT_EQ(hl::far::unique(flags), (std::vector<std::string>{"", "N", "Y", "other"}));
}

TEST(Column, TextThatWasMovedFromMayGetRows) {
  column<text> from{"N", "Y"};
  const column<text> to(std::move(from));
  from.clear();
  from.push_back("x");
  EXPECT_EQ(all_of(from), std::vector<std::string>{"x"});
  EXPECT_EQ(all_of(to), (std::vector<std::string>{"N", "Y"}));
}

TEST(Column, Transform) {
  const column<double> miles{10, 60, 5}, hours{0.5, 1, 2};
  EXPECT_EQ(all_of(hl::far::transform(std::divides<>(), miles, hours)), (std::vector<double>{20, 60, 2.5}));
  const auto words = hl::far::transform([](double m) { return m > 9 ? "far" : "near"; }, miles);
  EXPECT_EQ(all_of(words), (std::vector<std::string>{"far", "far", "near"}));
  EXPECT_THROW(hl::far::transform(std::plus<>(), miles, column<double>{1}), std::invalid_argument);
}

// With runs and blocks of a few rows, so that there are many levels of them.
TEST(ColumnOrder, SmallRunsAndBlocks) {
  std::mt19937_64 random(7);
  for (std::size_t size : {0u, 1u, 9u, 10u, 11u, 100u, 1000u, 12'345u}) {
    column<hl::far::inside::sort_item> items;
    for (std::size_t i = 0; i < size; ++i) items.push_back({random() % 50, i});
    std::vector<hl::far::inside::sort_item> model(items.begin(), items.end());
    std::sort(model.begin(), model.end());
    hl::far::inside::sort_items(items, 10, 3);
    ASSERT_TRUE(std::equal(items.begin(), items.end(), model.begin(), model.end())) << size;
    const column<std::uint64_t> to = hl::far::inside::places(items, 16);
    column<std::uint64_t> keys(size), numbers(size);
    for (std::size_t i = 0; i < size; ++i) keys[items[i].row] = items[i].key, numbers[i] = i;
    const auto sorted_keys = hl::far::inside::moved(keys, to, 16), rows = hl::far::inside::moved(numbers, to, 16);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(sorted_keys[i], model[i].key);
      ASSERT_EQ(rows[i], model[i].row);
    }
  }
}

// Groups by a table and by sorting: the same numbers, the same bits.
TEST(ColumnOrder, ManyGroupsAndFew) {
  std::mt19937_64 random(8);
  column<std::int32_t> keys;
  column<double> values;
  for (int i = 0; i < 20'000; ++i) {
    keys.push_back(static_cast<std::int32_t>(random() % 300) - 150);
    values.push_back(static_cast<double>(random()) / 3);
  }
  const hl::far::any_column by = keys.copy();
  const auto few = hl::far::inside::grouped(by, 300), many = hl::far::inside::grouped(by, 299);
  EXPECT_FALSE(few.to);
  ASSERT_TRUE(many.to);
  EXPECT_EQ(all_of(few.keys), all_of(many.keys));
  EXPECT_EQ(all_of(few.rows), all_of(many.rows));
  const auto of_few = hl::far::inside::fold(few, values),
             of_many = hl::far::inside::fold(many, hl::far::inside::moved(values, *many.to));
  for (std::size_t i = 0; i < of_few.size(); ++i) {
    ASSERT_EQ(of_few[i].sum, of_many[i].sum);
    ASSERT_EQ(of_few[i].least, of_many[i].least);
    ASSERT_EQ(of_few[i].greatest, of_many[i].greatest);
  }
}

dataframe small_frame() {
  dataframe made;
  made.set("n", column<std::int64_t>{3, 1, 2});
  made.set("x", column<double>{0.5, std::numeric_limits<double>::quiet_NaN(), -1});
  made.set("s", column<text>{"c", "a", "b"});
  made.set("b", column<bool>{true, false, true});
  return made;
}

TEST(Dataframe, NamesAndColumns) {
  dataframe frame = small_frame();
  EXPECT_EQ(frame.rows(), 3u);
  EXPECT_EQ(frame.names(), (std::vector<std::string>{"n", "x", "s", "b"}));
  frame.erase("x");
  EXPECT_FALSE(frame.contains("x"));
  frame.get_mut<std::int64_t>("n")[0] = 9;
  EXPECT_EQ(frame.get<std::int64_t>("n")[0], 9);
  frame.sort_by("s", hl::far::order::descending);
  EXPECT_EQ(all_of(frame.get<text>("s")), (std::vector<std::string>{"c", "b", "a"}));
  EXPECT_EQ(all_of(frame.get<std::int64_t>("n")), (std::vector<std::int64_t>{9, 2, 1}));
  EXPECT_EQ(frame.where("b", compare::equal, true).rows(), 2u);
  EXPECT_EQ(frame.where("s", compare::less, "b").get<std::int64_t>("n")[0], 1);
  EXPECT_EQ(frame.slice(1, 9).rows(), 2u);
  EXPECT_EQ(frame.slice(7, 9).rows(), 0u);
  EXPECT_EQ(frame.slice(7, 9).columns(), 3u);
}

TEST(Dataframe, OfNoRows) {
  dataframe frame = small_frame().slice(0, 0);
  frame.sort_by("x");
  EXPECT_EQ(frame.where("n", compare::greater, 0).rows(), 0u);
  const dataframe groups = frame.group_by("s", {{aggregate::count}, {aggregate::median, "x"}});
  EXPECT_EQ(groups.rows(), 0u);
  EXPECT_EQ(groups.names(), (std::vector<std::string>{"s", "count", "median(x)"}));
  EXPECT_EQ(frame.join(small_frame().group_by("n", {}), "n").rows(), 0u);
  EXPECT_EQ(dataframe().rows(), 0u);
  EXPECT_EQ(dataframe().copy().columns(), 0u);
}

TEST(Dataframe, GroupsOfOneNumber) {
  dataframe frame;
  frame.set("k", column<double>{0.0, -0.0, std::nan(""), -std::nan("")});
  frame.set("x", column<double>{1, 2, std::nan(""), 4});
  const dataframe groups = frame.group_by("k", {{aggregate::count}, {aggregate::max, "x", "most"}});
  EXPECT_EQ(all_of(groups.get<std::int64_t>("count")), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(all_of(groups.get<double>("most")), (std::vector<double>{2, 4}));
}

// What is said, so that somebody can mend it.
template <typename Error, typename Work>
void expect_said(const char* what, Work work) {
  try {
    work();
    ADD_FAILURE() << "nothing was thrown, but: " << what;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}
template <typename Error = std::invalid_argument>
void expect_refused(const char* what, void (*work)(dataframe&)) {
  dataframe frame = small_frame();
  expect_said<Error>(what, [&] { work(frame); });
  EXPECT_EQ(frame.rows(), 3u);
  EXPECT_EQ(frame.columns(), 4u);
}

TEST(Dataframe, BadInputIsSaid) {
  expect_refused("there is no column 'fare'; there are: n, x, s, b", [](dataframe& f) { f.sort_by("fare"); });
  expect_refused("column 'n' has int64 elements, not double", [](dataframe& f) { f.get<double>("n"); });
  expect_refused("column 's' has text elements", [](dataframe& f) { f.where("s", compare::equal, 1); });
  expect_refused("column 'n' has int64 elements", [](dataframe& f) { f.where("n", compare::equal, "1"); });
  expect_refused("2.5", [](dataframe& f) { f.where("n", compare::greater, 2.5); });
  expect_refused("18446744073709551615", [](dataframe& f) { f.where("n", compare::less, ~std::uint64_t{0}); });
  expect_refused("column 'y' has 2 elements, and the frame 3 rows",
                 [](dataframe& f) { f.set("y", column<double>{1, 2}); });
  expect_refused("2 truth values for 3 rows", [](dataframe& f) { f.where(column<bool>{true, false}); });
  expect_refused("column 's' has text elements; only its rows can be counted",
                 [](dataframe& f) { f.group_by("n", {{aggregate::sum, "s"}}); });
  expect_refused("there is no column ''", [](dataframe& f) { f.group_by("n", {{aggregate::sum}}); });
  expect_refused("two columns would be called 'n'",
                 [](dataframe& f) { f.group_by("n", {{aggregate::count, "", "n"}}); });
  expect_refused("both frames have a column 'x'", [](dataframe& f) { f.join(small_frame(), "n"); });
  expect_refused("rows 0 and 2 of the other frame have the same element in column 'b'", [](dataframe& f) {
    dataframe other;
    other.set("b", column<bool>{true, false, true});
    f.join(other, "b");
  });
  expect_refused("column 'n' has int64 elements here, and double elements in the other frame", [](dataframe& f) {
    dataframe other;
    other.set("n", column<double>{1});
    f.join(other, "n");
  });
  expect_refused<std::overflow_error>("sum of column 'n'", [](dataframe& f) {
    f.set("n", column<std::int64_t>(3, std::numeric_limits<std::int64_t>::max()));
    f.group_by("b", {{aggregate::sum, "n"}});
  });
}

}  // namespace
