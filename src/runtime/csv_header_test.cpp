// csv.hpp: what files say, and what is said of files that are wrong.
#include "hinterland/csv.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "far/test_support.hpp"

namespace {

using hl::far::csv;
using hl::far::csv_column;
using hl::far::csv_error;
using hl::far::dataframe;
using hl::far::text;

class File {
 public:
  explicit File(const std::string& contents) {
    int fd = mkstemp(path_.data());
    if (fd < 0) std::abort();
    close(fd);
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~File() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/hinterland-csv-XXXXXX";
};

dataframe read(const std::string& contents, const std::vector<csv_column>& columns,
               const hl::far::csv_options& how = {}) {
  return hl::far::read_csv(File(contents).path(), columns, how);
}
std::vector<std::string> words(const std::string& contents, const hl::far::csv_options& how = {}) {
  const dataframe frame = read(contents, {{"a", csv::text}}, how);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < frame.rows(); ++i) all.emplace_back(frame.get<text>("a")[i]);
  return all;
}

TEST(Csv, Quoting) {
  using strings = std::vector<std::string>;
  EXPECT_EQ(words("a,b\n1,2\n3,4\n"), (strings{"1", "3"}));
  EXPECT_EQ(words("b,a\r\n1,2\r\n3,4"), (strings{"2", "4"}));
  EXPECT_EQ(words("\xef\xbb\xbf\"a\",b\n\"x, \"\"y\"\"\n z\",\n"), (strings{"x, \"y\"\n z"}));
  EXPECT_EQ(words("a\n\"\"\n\n\nq\n"), (strings{"", "q"})) << "empty lines are passed over";
  EXPECT_EQ(words("a;b\n1,5;2\n", {.separator = ';'}), (strings{"1,5"}));
  EXPECT_EQ(words("1\n2\n", {.header = false}), (strings{"1", "2"}));
  EXPECT_EQ(words("a,b\n,\n"), (strings{""}));
  EXPECT_EQ(words("a\n"), strings());
  EXPECT_EQ(words(std::string("a\nx\0y\n", 6)), (strings{std::string("x\0y", 3)}));
}

TEST(Csv, Kinds) {
  const dataframe frame = read(
      "when,n,x\n"
      "2016-03-14 17:24:55,-9223372036854775808,1e3\n"
      "1970-01-01, +7 ,\n"
      "2024-02-29T00:00:00.125Z,0,-inf\n"
      "1969-12-31 23:59,1,nan\n",
      {{"when", csv::time}, {"n", csv::int64}, {"x", csv::float64}});
  const auto& when = frame.get<std::int64_t>("when");
  EXPECT_EQ(std::vector<std::int64_t>(when.begin(), when.end()),
            (std::vector<std::int64_t>{1457976295, 0, 1709164800, -60}));
  EXPECT_EQ(frame.get<std::int64_t>("n")[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(frame.get<std::int64_t>("n")[1], 7);
  EXPECT_EQ(frame.get<double>("x")[0], 1000);
  EXPECT_TRUE(std::isnan(frame.get<double>("x")[1]));
  EXPECT_EQ(frame.get<double>("x")[2], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(frame.get<double>("x")[3]));
}

// Any fields, written as RFC 4180 has it, come back; records lie across the ends of the reader's buffer.
TEST(Csv, WhatWasWrittenComesBack) {
  const std::uint64_t seed = hinterland::far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  static const std::string letters = "ab,\"\n\r; \xc3\xbc";
  std::vector<std::string> fields;
  std::string contents = "a,n\n";
  for (int i = 0; i < 60'000; ++i) {
    std::string field;
    for (std::uint64_t left = random() % 5000 == 0 ? 200'000 : random() % 60; left > 0; --left)
      field += letters[random() % letters.size()];
    fields.push_back(field);
    contents += '"';
    for (const char c : field) contents += c == '"' ? std::string("\"\"") : std::string(1, c);
    contents += "\"," + std::to_string(i) + (random() % 2 == 0 ? "\r\n" : "\n");
  }
  const dataframe frame = read(contents, {{"a", csv::text}, {"n", csv::int64}});
  ASSERT_EQ(frame.rows(), fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    ASSERT_EQ(frame.get<text>("a")[i], fields[i]);
    ASSERT_EQ(frame.get<std::int64_t>("n")[i], static_cast<std::int64_t>(i));
  }
}

TEST(Csv, FromAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    std::string contents = "n\n";
    for (int i = 0; i < 100'000; ++i) contents += std::to_string(i) + "\n";
    for (std::size_t at = 0; at < contents.size();) {
      const ssize_t wrote = write(ends[1], contents.data() + at, contents.size() - at);
      if (wrote <= 0) break;
      at += static_cast<std::size_t>(wrote);
    }
    close(ends[1]);
  });
  const dataframe frame = hl::far::read_csv("/dev/fd/" + std::to_string(ends[0]), {{"n", csv::int64}});
  writer.join();
  close(ends[0]);
  EXPECT_EQ(hl::far::sum(frame.get<std::int64_t>("n")), 99'999ll * 50'000);
}

void expect_said(const std::string& contents, std::size_t line, const std::string& column, const std::string& what,
                 const std::vector<csv_column>& columns = {
                     {"n", csv::int64}, {"x", csv::float64}, {"t", csv::time}}) {
  try {
    static_cast<void>(read(contents, columns));
    ADD_FAILURE() << "nothing was thrown, but: " << what;
  } catch (const csv_error& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_EQ(error.column(), column) << error.what();
  }
}

TEST(Csv, BadInputIsSaid) {
  const std::string head = "n,x,t\n";
  expect_said("", 0, "", "is empty");
  expect_said("n,x\n1,2\n", 1, "t", "the header has no such name; it has: n, x");
  expect_said("n,x,t,n\n", 1, "n", "twice");
  expect_said(head + "1,2\n", 2, "", "there are 2 fields, where 3 are expected");
  expect_said(head + "1,2,2020-01-01\n1,2,2020-01-01,\n", 3, "", "there are 4 fields");
  expect_said(head + "12x,2,2020-01-01\n", 2, "n", "\"12x\" is no number; an integer of 64 bits is expected");
  expect_said(head + "1.5,2,2020-01-01\n", 2, "n", "is no number");
  expect_said(head + "9223372036854775808,2,2020-01-01\n", 2, "n", "is out of range");
  expect_said(head + "+-1,2,2020-01-01\n", 2, "n", "is no number");
  expect_said(head + ",2,2020-01-01\n", 2, "n", "is empty");
  expect_said(head + "1,two,2020-01-01\n", 2, "x", "\"two\" is no number");
  expect_said(head + "\"1\n2\",2,2020-01-01\n", 2, "n", "is no number");
  expect_said(head + "1,2,14.3.2016\n", 2, "t", "is no time, as 2016-03-14");
  expect_said(head + "1,2,2015-02-29\n", 2, "t", "no calendar has");
  expect_said(head + "1,2,2015-02-28 24:00:00\n", 2, "t", "no day has");
  expect_said(head + "1,2,2015-02-28 12:00:00 PM\n", 2, "t", "is no time");
  expect_said(head + "1,2,\n", 2, "t", "is empty");
  expect_said(head + "1,\"2\"0,2020-01-01\n", 2, "2", "text follows the closing quotation mark");
  expect_said(head + "1,2\"0,2020-01-01\n", 2, "2", "a quotation mark in a field that does not begin with one");
  expect_said(head + "\n1,\"2,2020-01-01\n3,4,2020-01-01\n", 3, "2", "the file ends within quotation marks");
  expect_said(head + "\"" + std::string(17 << 20, 'x'), 2, "1", "more than 16 MiB");
  expect_said(head + std::string(200, '7') + ",2,2020-01-01\n", 2, "n", "7...\" is out of range");
  expect_said(head, 0, "n", "is asked for twice", {{"n", csv::int64}, {"n", csv::text}});
}

TEST(Csv, FilesThatCannotBeRead) {
  const std::vector<csv_column> columns{{"n", csv::int64}};
  EXPECT_THROW(
      {
        try {
          hl::far::read_csv("/nowhere/trips.csv", columns);
        } catch (const csv_error& error) {
          EXPECT_STREQ(error.what(), "/nowhere/trips.csv: cannot be opened: No such file or directory");
          throw;
        }
      },
      csv_error);
  EXPECT_THROW(hl::far::read_csv("/tmp", columns), csv_error);
}

}  // namespace
