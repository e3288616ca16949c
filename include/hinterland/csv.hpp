// Files of comma-separated values (RFC 4180) into data frames.
//
//     hl::far::dataframe trips = hl::far::read_csv("trips.csv", {
//         {"pickup_datetime", hl::far::csv::time},
//         {"passenger_count", hl::far::csv::int64},
//         {"trip_distance", hl::far::csv::float64},
//         {"store_and_fwd_flag", hl::far::csv::text},
//     });
//
// The file is read once, a MiB at a time; what memory it takes is that of the columns. It may be a pipe (/dev/stdin).
// Columns that are not named are passed over. Fields are UTF-8, or any other bytes.
//
// Errors: csv_error (csv_records.hpp), which says in which line and column what is wrong; as column.hpp where there
// is no memory. C++20, for GCC and Clang on x86-64.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "hinterland/csv_records.hpp"
#include "hinterland/dataframe.hpp"

namespace hl::far {

// What the fields of a column are, and what its elements are. Blanks around numbers and times are passed over.
enum class csv {
  int64,    // std::int64_t: -12
  float64,  // double: -1.5e3, inf, nan; an empty field is not a number (NaN)
  text,     // text: as it is
  time,     // std::int64_t, seconds since 1970 (UTC): 2016-03-14, 2016-03-14 17:24:55, 2016-03-14T17:24:55.5Z, of
            // which parts of a second are left out
};
struct csv_column {
  std::string name;
  csv kind;
};
struct csv_options {
  char separator = ',';
  bool header = true;  // the first record has the names; without it, all columns are to be named, in their order
};

namespace inside {

inline std::string_view without_blanks(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

// "" or what is wrong.
template <typename T>
const char* parse_number(std::string_view field, T& value) {
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::result_out_of_range) return "is out of range";
  if (error != std::errc() || end != field.data() + field.size()) return "is no number";
  return "";
}

class time_parser {
 public:
  explicit time_parser(std::string_view field) : left_(field) {}

  const char* parse(std::int64_t& value) {
    using namespace std::chrono;
    int date[3] = {}, clock[3] = {};
    if (!digits(4, date[0]) || !one('-') || !digits(2, date[1]) || !one('-') || !digits(2, date[2]))
      return "is no time, as 2016-03-14 or 2016-03-14 17:24:55";
    if (!left_.empty() && !parse_clock(clock)) return "is no time, as 2016-03-14 17:24:55";
    const year_month_day day{year(date[0]), month(static_cast<unsigned>(date[1])),
                             std::chrono::day(static_cast<unsigned>(date[2]))};
    if (!day.ok()) return "is a day that no calendar has";
    if (clock[0] > 23 || clock[1] > 59 || clock[2] > 60) return "is an hour, a minute or a second that no day has";
    value = seconds(sys_days(day).time_since_epoch()).count() + clock[0] * 3600 + clock[1] * 60 + clock[2];
    return "";
  }

 private:
  bool parse_clock(int (&clock)[3]) {
    if (!one(' ') && !one('T')) return false;
    if (!digits(2, clock[0]) || !one(':') || !digits(2, clock[1])) return false;
    if (one(':') && !digits(2, clock[2])) return false;
    if (one('.'))
      while (!left_.empty() && is_digit(left_.front())) left_.remove_prefix(1);
    one('Z');
    return left_.empty();
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool one(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool digits(std::size_t count, int& value) {
    if (left_.size() < count) return false;
    for (; count > 0; --count, left_.remove_prefix(1)) {
      if (!is_digit(left_.front())) return false;
      value = 10 * value + (left_.front() - '0');
    }
    return true;
  }
  std::string_view left_;
};

// Appends a field to its column: "" or what is wrong with it.
inline const char* append_field(any_column& to, csv kind, std::string_view field) {
  if (kind == csv::text) {
    std::get<column<text>>(to).push_back(field);
    return "";
  }
  field = without_blanks(field);
  if (kind == csv::float64) {
    double value = std::numeric_limits<double>::quiet_NaN();
    const char* wrong = field.empty() ? "" : parse_number(field, value);
    std::get<column<double>>(to).push_back(value);
    return wrong;
  }
  std::int64_t value = 0;
  const char* wrong = field.empty()       ? "is empty: read the column as text, or, of numbers, as float64"
                      : kind == csv::time ? time_parser(field).parse(value)
                                          : parse_number(field, value);
  std::get<column<std::int64_t>>(to).push_back(value);
  return wrong;
}

inline any_column empty_of(csv kind) {
  if (kind == csv::text) return column<text>();
  if (kind == csv::float64) return column<double>();
  return column<std::int64_t>();
}
inline const char* kind_wanted(csv kind) {
  return kind == csv::int64 ? "an integer of 64 bits" : kind == csv::float64 ? "a number" : "a time";
}

class csv_reader {
 public:
  csv_reader(const std::string& path, const std::vector<csv_column>& wanted, const csv_options& how)
      : records_(path, how.separator), wanted_(wanted) {
    if (how.header && !records_.next())
      records_.fail(0, "", "is empty; a header with the names of its columns is missing");
    fields_ = how.header ? records_.fields() : wanted.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (std::size_t before = 0; before < i; ++before)
        if (wanted[before].name == wanted[i].name)
          records_.fail(0, wanted[i].name, "is asked for twice; name it once");
      places_.push_back(how.header ? place_of(wanted[i].name) : i);
      columns_.push_back(empty_of(wanted[i].kind));
    }
  }

  dataframe read() {
    for (; records_.next(); ++rows_) {
      if (records_.fields() != fields_)
        records_.fail(records_.line(), "",
                      "there are " + std::to_string(records_.fields()) + " fields, where " + std::to_string(fields_) +
                          " are expected");
      for (std::size_t i = 0; i < wanted_.size(); ++i) append(i);
      if (rows_ == 10'000) make_room();
    }
    dataframe made;
    for (std::size_t i = 0; i < wanted_.size(); ++i) made.set(wanted_[i].name, std::move(columns_[i]));
    return made;
  }

 private:
  std::size_t place_of(const std::string& name) {
    std::size_t found = fields_;
    std::string all;
    for (std::size_t i = 0; i < fields_; ++i) {
      all += (i == 0 ? "" : ", ") + std::string(records_.field(i));
      if (records_.field(i) != name) continue;
      if (found != fields_)
        records_.fail(records_.line(), name, "the header has this name twice; give one another name");
      found = i;
    }
    if (found == fields_)
      records_.fail(records_.line(), name, "the header has no such name; it has: " + all.substr(0, 500));
    return found;
  }
  void append(std::size_t i) {
    const std::string_view field = records_.field(places_[i]);
    const char* const wrong = append_field(columns_[i], wanted_[i].kind, field);
    if (*wrong == '\0') return;
    records_.fail(records_.line(), wanted_[i].name,
                  "\"" + std::string(field.substr(0, 40)) + (field.size() > 40 ? "...\" " : "\" ") + wrong + "; " +
                      kind_wanted(wanted_[i].kind) + " is expected");
  }
  // For all that is likely to come, so that columns need not be copied while they grow.
  void make_room() {
    if (const std::size_t likely = records_.records_likely(rows_); likely > rows_)
      for (any_column& each : columns_) reserve(each, likely);
  }

  csv_records records_;
  const std::vector<csv_column>& wanted_;
  std::size_t fields_ = 0;           // of each record
  std::vector<std::size_t> places_;  // of each column that is wanted
  std::vector<any_column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace inside

inline dataframe read_csv(const std::string& path, const std::vector<csv_column>& columns,
                          const csv_options& how = {}) {
  return inside::csv_reader(path, columns, how).read();
}

}  // namespace hl::far
