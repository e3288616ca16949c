// For tests of data frames: rows of the standard library's, and the same operations on them, written plainly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "hinterland/dataframe.hpp"

namespace hinterland::testing {

struct Row {
  std::int64_t id;
  double fare;
  float tip;
  std::int32_t day;
  std::uint64_t big;
  std::uint32_t small;
  bool paid;
  std::string flag;
};
using Rows = std::vector<Row>;

// Calls visit(name, member) for each column.
template <typename Visit>
void each_member(Visit&& visit) {
  visit("id", &Row::id);
  visit("fare", &Row::fare);
  visit("tip", &Row::tip);
  visit("day", &Row::day);
  visit("big", &Row::big);
  visit("small", &Row::small);
  visit("paid", &Row::paid);
  visit("flag", &Row::flag);
}
template <typename T>
using kind_of_member = std::conditional_t<std::is_same_v<T, std::string>, hl::far::text, T>;

inline double any_fare(std::mt19937_64& random) {
  switch (random() % 200) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return -0.0;
    case 2:
      return 0.0;
    default:
      return static_cast<double>(static_cast<std::int64_t>(random() % 200'000) - 1000) / 7;
  }
}
inline Row any_row(std::mt19937_64& random) {
  static const char* const flags[] = {"N", "Y", "", "Zürich", "long enough not to be kept within the string itself"};
  return {static_cast<std::int64_t>(random() % 1'000'000'000) - 500'000'000,
          any_fare(random),
          static_cast<float>(any_fare(random)),
          static_cast<std::int32_t>(random() % 7) - 3,
          random() >> 20,
          static_cast<std::uint32_t>(random() % 300),
          random() % 2 == 0,
          random() % 10 == 0 ? "word " + std::to_string(random() % 1000) : flags[random() % 5]};
}

inline hl::far::dataframe frame_of(const Rows& rows) {
  hl::far::dataframe made;
  each_member([&]<typename T>(const char* name, T Row::* member) {
    hl::far::column<kind_of_member<T>> values;
    for (const Row& row : rows) values.push_back(row.*member);
    made.set(name, std::move(values));
  });
  return made;
}

template <typename T>
bool same_bits(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::memcmp(&a, &b, sizeof a) == 0;
  else
    return a == b;
}

// "" or the first element that differs.
inline std::string differs(const hl::far::dataframe& frame, const Rows& rows) {
  if (frame.rows() != rows.size()) return std::to_string(frame.rows()) + " rows, not " + std::to_string(rows.size());
  std::string wrong;
  each_member([&]<typename T>(const char* name, T Row::* member) {
    const auto& values = frame.get<kind_of_member<T>>(name);
    for (std::size_t i = 0; i < rows.size() && wrong.empty(); ++i)
      if (!same_bits<T>(T(values[i]), rows[i].*member)) wrong = "row " + std::to_string(i) + " of " + name;
  });
  return wrong;
}

// As the frame orders elements: what is no number last, both zeros one.
template <typename T>
bool comes_before(const T& a, const T& b) {
  if (a != a || b != b) return a == a && b != b;
  return a < b;
}
template <typename T>
void sort_rows(Rows& rows, T Row::* by, bool descending) {
  std::stable_sort(rows.begin(), rows.end(), [=](const Row& a, const Row& b) {
    return descending ? comes_before(b.*by, a.*by) : comes_before(a.*by, b.*by);
  });
}

// The rows of each group, groups in order, rows in theirs.
template <typename T>
std::vector<std::vector<const Row*>> groups_of(const Rows& rows, T Row::* by) {
  std::map<T, std::vector<const Row*>, bool (*)(const T&, const T&)> found(comes_before<T>);
  for (const Row& row : rows) found[row.*by].push_back(&row);
  std::vector<std::vector<const Row*>> groups;
  for (auto& [key, group] : found) groups.push_back(std::move(group));
  return groups;
}

// "" or what of one column's aggregates is wrong in one group.
template <typename T>
std::string aggregates_differ(const hl::far::dataframe& frame, const std::string& name, std::size_t at,
                              const std::vector<const Row*>& group, T Row::* of) {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, hl::far::detail::wide>;
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double,
                                 std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  Total sum = 0;
  std::optional<T> least, greatest;
  std::vector<T> sorted;
  for (const Row* row : group) {
    const T value = row->*of;
    sum += value;
    sorted.push_back(value);
    if (value != value) continue;
    if (!least || value < *least) least = value;
    if (!greatest || *greatest < value) greatest = value;
  }
  std::sort(sorted.begin(), sorted.end(), comes_before<T>);
  const auto same = [](auto a, auto b) { return a == b || (a != a && b != b); };  // zeros may have either sign
  const T none = std::numeric_limits<T>::quiet_NaN();
  const double mean = static_cast<double>(sum) / static_cast<double>(group.size());
  if (!same(frame.get<Sum>("sum(" + name + ")")[at], static_cast<Sum>(sum))) return "sum(" + name + ")";
  if (!same(frame.get<double>("mean(" + name + ")")[at], mean)) return "mean(" + name + ")";
  if (!same(frame.get<T>("min(" + name + ")")[at], least.value_or(none))) return "min(" + name + ")";
  if (!same(frame.get<T>("max(" + name + ")")[at], greatest.value_or(none))) return "max(" + name + ")";
  if (!same(frame.get<T>("median(" + name + ")")[at], sorted[(sorted.size() - 1) / 2])) return "median(" + name + ")";
  return "";
}

// All aggregates of two columns of numbers, `first` and another one, by one column.
template <typename T>
std::string groups_differ(const hl::far::dataframe& frame, const Rows& rows, const char* by, T Row::* member,
                          std::size_t first) {
  using hl::far::aggregate;
  static const char* const numbers[] = {"id", "fare", "tip", "day", "big", "small"};
  const char* const of[] = {numbers[first % 6], numbers[(first + 1) % 6]};
  std::vector<hl::far::aggregation> what{{aggregate::count}};
  for (const char* name : of)
    for (aggregate each : {aggregate::sum, aggregate::mean, aggregate::min, aggregate::max, aggregate::median})
      what.push_back({each, name});
  const hl::far::dataframe made = frame.group_by(by, what);
  const auto groups = groups_of(rows, member);
  if (made.rows() != groups.size()) return std::to_string(made.rows()) + " groups";
  const auto& keys = made.get<kind_of_member<T>>(by);
  std::string wrong;
  for (std::size_t i = 0; i < groups.size() && wrong.empty(); ++i) {
    const T key = T(keys[i]), right = groups[i][0]->*member;
    if (comes_before(key, right) || comes_before(right, key)) return "the key of group " + std::to_string(i);
    if (made.get<std::int64_t>("count")[i] != static_cast<std::int64_t>(groups[i].size())) return "count";
    each_member([&]<typename Of>(const char* name, Of Row::* values) {
      if constexpr (std::is_arithmetic_v<Of> && !std::is_same_v<Of, bool>)
        if (wrong.empty() && (name == std::string(of[0]) || name == std::string(of[1])))
          wrong = aggregates_differ(made, name, i, groups[i], values);
    });
  }
  return wrong;
}

inline Rows rows_where(const Rows& rows, const std::function<bool(const Row&)>& is) {
  Rows found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found), is);
  return found;
}
template <typename T>
bool holds(hl::far::compare how, const T& a, const T& b) {
  switch (how) {
    case hl::far::compare::equal:
      return a == b;
    case hl::far::compare::not_equal:
      return a != b;
    case hl::far::compare::less:
      return a < b;
    case hl::far::compare::less_equal:
      return a <= b;
    case hl::far::compare::greater:
      return a > b;
    default:
      return a >= b;
  }
}

// A data frame and the rows that it has to hold, taken through random operations.
class FrameAndRows {
 public:
  FrameAndRows(std::uint64_t seed, std::size_t count) : random_(seed) {
    for (std::size_t i = 0; i < count; ++i) rows_.push_back(any_row(random_));
    frame_ = frame_of(rows_);
  }
  // "" or what went wrong.
  std::string step() {
    switch (random_() % 10) {
      case 0:
        return said("where", where());
      case 1:
        return said("where both", where_both());
      case 2:
      case 3:
        return said("sort_by", sort());
      case 4:
        return said("group_by", group());
      case 5:
        return said("set", change());
      case 6:
        return said("join", join());
      case 7:
        return said("slice", slice());
      case 8:
        return said("copy", copy());
      default:
        return said("of one column", of_columns());
    }
  }
  std::string check() const { return differs(frame_, rows_); }

 private:
  using compare = hl::far::compare;
  static std::string said(const char* what, const std::string& wrong) {
    return wrong.empty() ? "" : std::string(what) + ": " + wrong;
  }
  const Row& any() { return rows_[random_() % rows_.size()]; }

  std::string where() {
    const auto how = static_cast<compare>(1 + random_() % 6);
    const Row with = random_() % 4 == 0 ? any_row(random_) : any();
    std::string wrong;
    std::uint64_t turn = random_() % 8;
    each_member([&]<typename T>(const char* name, T Row::* member) {
      if (turn-- != 0) return;
      const T value = with.*member;
      wrong = differs(frame_.where(name, how, value),
                      rows_where(rows_, [&](const Row& row) { return holds<T>(how, row.*member, value); }));
    });
    return wrong;
  }
  std::string where_both() {
    const auto which = hl::far::transform([](double fare, std::int32_t day, bool paid,
                                             std::string_view flag) { return paid && fare > day && flag != "N"; },
                                          frame_.get<double>("fare"), frame_.get<std::int32_t>("day"),
                                          frame_.get<bool>("paid"), frame_.get<hl::far::text>("flag"));
    return differs(frame_.where(which), rows_where(rows_, [](const Row& row) {
                     return row.paid && row.fare > row.day && row.flag != "N";
                   }));
  }
  std::string sort() {
    const bool descending = random_() % 2 == 0;
    std::uint64_t turn = random_() % 8;
    each_member([&](const char* name, auto member) {
      if (turn-- != 0) return;
      frame_.sort_by(name, descending ? hl::far::order::descending : hl::far::order::ascending);
      sort_rows(rows_, member, descending);
    });
    return check();
  }
  std::string group() {
    std::string wrong;
    std::uint64_t turn = random_() % 8;
    each_member([&](const char* name, auto member) {
      if (turn-- == 0) wrong = groups_differ(frame_, rows_, name, member, random_() % 6);
    });
    return wrong;
  }
  std::string change() {
    frame_.set("fare", hl::far::transform([](double fare, std::uint32_t small) { return fare + small; },
                                          frame_.get<double>("fare"), frame_.get<std::uint32_t>("small")));
    frame_.set("flag", hl::far::transform([](std::string_view flag) { return std::string(flag.substr(0, 6)); },
                                          frame_.get<hl::far::text>("flag")));
    for (Row& row : rows_) {
      row.fare += row.small;
      row.flag = row.flag.substr(0, 6);
    }
    return check();
  }
  std::string join() {
    hl::far::dataframe names;
    hl::far::column<std::uint32_t> small;
    hl::far::column<hl::far::text> name;
    for (std::uint32_t i = 0; i < 300; i += 1 + static_cast<std::uint32_t>(random_() % 3))
      small.push_back(300 - i), name.push_back("number " + std::to_string(300 - i));
    std::vector<bool> there(301);
    for (const std::uint32_t each : small) there[each] = true;
    names.set("small", std::move(small));
    names.set("name", std::move(name));
    hl::far::dataframe both = frame_.join(names, "small");
    for (std::size_t i = 0; i < both.rows(); ++i)
      if (both.get<hl::far::text>("name")[i] != "number " + std::to_string(both.get<std::uint32_t>("small")[i]))
        return "the partner of row " + std::to_string(i);
    both.erase("name");
    return differs(both, rows_where(rows_, [&](const Row& row) { return there[row.small]; }));
  }
  std::string slice() {
    const std::size_t first = random_() % rows_.size(), count = random_() % rows_.size();
    const std::size_t end = std::min(first + count, rows_.size());
    return differs(frame_.slice(first, count), Rows(rows_.begin() + static_cast<std::ptrdiff_t>(first),
                                                    rows_.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  // What is written into a copy is not in the other.
  std::string copy() {
    hl::far::dataframe other = frame_.copy();
    for (double& fare : other.get_mut<double>("fare")) fare = 1;
    if (std::string wrong = check(); !wrong.empty()) return wrong;
    Rows rows = rows_;
    for (Row& row : rows) row.fare = 1;
    return differs(other, rows);
  }
  std::string of_columns() {
    std::vector<double> fares;
    hl::far::detail::wide sum = 0;
    for (const Row& row : rows_) fares.push_back(row.fare), sum += row.id;
    std::sort(fares.begin(), fares.end(), comes_before<double>);
    const auto& fare = frame_.get<double>("fare");
    hl::far::column<double> sorted = fare.copy();
    hl::far::sort(sorted);
    const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
    if (!std::equal(sorted.begin(), sorted.end(), fares.begin(), fares.end(), same)) return "sort";
    if (!same(*hl::far::median(fare), fares[(fares.size() - 1) / 2])) return "median";
    fares.erase(std::unique(fares.begin(), fares.end(), same), fares.end());
    const std::vector<double> distinct = hl::far::unique(fare);
    if (!std::equal(distinct.begin(), distinct.end(), fares.begin(), fares.end(), same)) return "unique";
    return hl::far::sum(frame_.get<std::int64_t>("id")) == sum ? "" : "sum";
  }

  std::mt19937_64 random_;
  Rows rows_;
  hl::far::dataframe frame_;
};

}  // namespace hinterland::testing
