#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "dataframe/trips.hpp"

namespace dataframe {
namespace {

using Words = std::vector<std::string_view>;

void split(std::string_view line, Words& words) {
  words.clear();
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (std::size_t comma; (comma = line.find(',')) != line.npos; line.remove_prefix(comma + 1))
    words.push_back(line.substr(0, comma));
  words.push_back(line);
}

template <typename T>
bool parse(std::string_view word, T& value) {
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

// 2016-01-31 23:59:59
bool parse_time(std::string_view word, Time& value) {
  int year = 0;
  unsigned month = 0, day = 0;
  Time hour = 0, minute = 0, second = 0;
  if (word.size() != 19 || word[4] != '-' || word[7] != '-' || word[10] != ' ' || word[13] != ':' ||
      word[16] != ':' || !parse(word.substr(0, 4), year) || !parse(word.substr(5, 2), month) ||
      !parse(word.substr(8, 2), day) || !parse(word.substr(11, 2), hour) || !parse(word.substr(14, 2), minute) ||
      !parse(word.substr(17, 2), second))
    return false;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60 || hour < 0 || minute < 0 || second < 0) return false;
  value = std::chrono::sys_days{date}.time_since_epoch().count() * Time{86400} + hour * 3600 + minute * 60 + second;
  return true;
}

bool append(std::string_view word, Column<std::int32_t>& column) { return parse(word, column.emplace_back(0)); }
bool append(std::string_view word, Column<double>& column) { return parse(word, column.emplace_back(0)); }
bool append(std::string_view word, Column<Time>& column) { return parse_time(word, column.emplace_back(0)); }
bool append(std::string_view word, Column<Small>& column) {
  if (word.size() != 1) return false;
  column.push_back(static_cast<Small>(word[0]));
  return true;
}

const char* meaning(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return "a whole number";
    case Kind::time:
      return "a time such as 2016-01-31 23:59:59";
    case Kind::letter:
      return "one letter";
    case Kind::number:
      break;
  }
  return "a number";
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file), stream_(file) {
    if (!stream_) throw std::invalid_argument("--csv: cannot open " + file_ + ": " + std::strerror(errno));
    for (const Field& field : kSchema) columns_.push_back(column_of(field.kind));
  }

  Table read() {
    read_header();
    while (next_line()) read_row();
    if (rows_of(columns_.front()) == 0) fail("there are no trips after the header");
    Table table;
    for (std::size_t field = 0; field < columns_.size(); ++field)
      table.add(kSchema[field].name, std::move(columns_[field]));
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument("--csv: " + file_ + ", line " + std::to_string(number_) + ": " + why);
  }

  // Lines with nothing in them are left out: the public files have one after the header.
  bool next_line() {
    do {
      if (!std::getline(stream_, line_)) {
        if (stream_.bad()) fail("it cannot be read");
        return false;
      }
      ++number_;
    } while (line_.empty() || line_ == "\r");
    split(line_, words_);
    return true;
  }

  void read_header() {
    if (!next_line()) fail("the file is empty");
    width_ = words_.size();
    for (const Field& field : kSchema) {
      std::size_t at = 0;
      while (at < words_.size() && words_[at] != field.name) ++at;
      if (at == words_.size())
        fail(std::string("the header has no column ") + field.name +
             "; take a file yellow_tripdata of January to June 2016");
      places_.push_back(at);
    }
  }

  void read_row() {
    if (words_.size() != width_)
      fail(std::to_string(words_.size()) + " columns, and the header has " + std::to_string(width_));
    for (std::size_t field = 0; field < columns_.size(); ++field) {
      std::string_view word = words_[places_[field]];
      if (!std::visit([&](auto& column) { return append(word, column); }, columns_[field]))
        fail(std::string("column ") + kSchema[field].name + ": '" + std::string(word) + "' is not " +
             meaning(kSchema[field].kind));
    }
  }

  const std::string& file_;
  std::ifstream stream_;
  std::string line_;
  std::size_t number_ = 0, width_ = 0;
  Words words_;                      // of the line
  std::vector<std::size_t> places_;  // of each field, in the file
  std::vector<AnyColumn> columns_;
};

}  // namespace

Table trips_of_csv(const std::string& file) { return Reader(file).read(); }

}  // namespace dataframe
