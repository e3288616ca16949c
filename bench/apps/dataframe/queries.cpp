#include "dataframe/queries.hpp"

#include <chrono>
#include <cmath>
#include <numbers>

namespace dataframe {
namespace {

using Numbers = std::vector<double>;

double number(auto value) { return static_cast<double>(value); }

// value, how often, and so on, of those that occur
Numbers listed(const Counts& counts) {
  Numbers numbers;
  for (std::size_t value = 0; value < counts.size(); ++value)
    if (counts[value] != 0) numbers.insert(numbers.end(), {number(value), number(counts[value])});
  return numbers;
}

Numbers vendors(const Crew& crew, Table& trips) {
  Numbers numbers = {number(trips.rows())};
  Counts counts = counts_of(crew, trips.get<std::int32_t>("VendorID"));
  for (std::size_t vendor = 0; vendor < counts.size(); ++vendor)
    if (counts[vendor] != 0) numbers.push_back(number(vendor));
  return numbers;
}

Numbers passengers_of(const Crew& crew, const Table& trips, int wanted) {
  Table chosen =
      taken(crew, trips,
            where(crew, trips.get<std::int32_t>("VendorID"), [=](std::int32_t vendor) { return vendor == wanted; }));
  return listed(counts_of(crew, chosen.get<std::int32_t>("passenger_count")));
}

Numbers durations(const Crew& crew, Table& trips) {
  Column<Time> duration = computed(
      crew, [](Time pickup, Time dropoff) { return dropoff - pickup; }, trips.get<Time>("tpep_pickup_datetime"),
      trips.get<Time>("tpep_dropoff_datetime"));
  Range<Time> range = range_of(crew, duration);
  trips.add("duration", std::move(duration));
  return {number(range.sum) / number(trips.rows()), number(range.least), number(range.largest)};
}

// How many trips were sent at once, and which vendors have kept some to send them later.
Numbers stored_and_forwarded(const Crew& crew, Table& trips) {
  auto with = [&](char letter) {
    return taken(crew, trips,
                 where(crew, trips.get<Small>("store_and_fwd_flag"), [=](Small flag) { return flag == letter; }));
  };
  Numbers numbers = {number(with('N').rows()) / number(trips.rows())};
  Counts kept = counts_of(crew, with('Y').get<std::int32_t>("VendorID"));
  for (std::size_t vendor = 0; vendor < kept.size(); ++vendor)
    if (kept[vendor] != 0) numbers.push_back(number(vendor));
  return numbers;
}

Numbers distances(const Crew& crew, Table& trips) {
  trips.add("haversine_distance",
            computed(crew, haversine, trips.get<double>("pickup_longitude"), trips.get<double>("pickup_latitude"),
                     trips.get<double>("dropoff_longitude"), trips.get<double>("dropoff_latitude")));
  Table far =
      taken(crew, trips, where(crew, trips.get<double>("haversine_distance"), [](double km) { return km > 100; }));
  return {number(far.rows())};
}

std::chrono::year_month_day date_of(Time time) {
  return std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds{std::chrono::seconds{time}});
}
Small hour_of(Time time) { return static_cast<Small>((time % 86400 + 86400) % 86400 / 3600); }
Small day_of(Time time) { return static_cast<Small>(static_cast<unsigned>(date_of(time).day())); }
Small month_of(Time time) { return static_cast<Small>(static_cast<unsigned>(date_of(time).month())); }

struct TimePart {
  const char* column;
  Small (*of)(Time);
};
constexpr TimePart kTimeParts[] = {{"pickup_hour", hour_of}, {"pickup_day", day_of}, {"pickup_month", month_of}};

Numbers times(const Crew& crew, Table& trips) {
  const auto& pickup = trips.get<Time>("tpep_pickup_datetime");
  Range<Time> range = range_of(crew, pickup);
  Numbers numbers = {number(range.largest), number(range.least)};
  for (const TimePart& part : kTimeParts) {
    Column<Small> column = computed(crew, part.of, pickup);
    Numbers counts = listed(counts_of(crew, column));
    numbers.insert(numbers.end(), counts.begin(), counts.end());
    trips.add(part.column, std::move(column));
  }
  return numbers;
}

Numbers durations_by(const Crew& crew, const Table& trips, const char* key) {
  Numbers numbers;
  auto groups = medians_by(crew, trips.get<Small>(key), trips.get<Time>("duration"));
  for (std::size_t value = 0; value < groups.size(); ++value)
    if (groups[value].count != 0) numbers.insert(numbers.end(), {number(value), groups[value].median});
  return numbers;
}

}  // namespace

double haversine(double longitude1, double latitude1, double longitude2, double latitude2) {
  constexpr double kRadian = std::numbers::pi / 180, kEarthRadius = 6371;
  double north = std::sin((latitude2 - latitude1) * kRadian / 2);
  double east = std::sin((longitude2 - longitude1) * kRadian / 2);
  double chord = north * north + east * east * std::cos(latitude1 * kRadian) * std::cos(latitude2 * kRadian);
  return 2 * kEarthRadius * std::asin(std::sqrt(std::min(1.0, chord)));
}

std::vector<Answer> ask_all(const Crew& crew, Table& trips) {
  std::vector<Answer> answers;
  auto ask = [&](const char* question, auto query, auto... more) {
    auto begin = std::chrono::steady_clock::now();
    Numbers numbers = query(crew, trips, more...);
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    answers.push_back({question, std::move(numbers), time.count()});
  };
  ask("vendors", vendors);
  ask("passengers of vendor 1", passengers_of, 1);
  ask("passengers of vendor 2", passengers_of, 2);
  ask("durations", durations);
  ask("stored and forwarded", stored_and_forwarded);
  ask("distances", distances);
  ask("times", times);
  ask("durations by day", durations_by, "pickup_day");
  ask("durations by month", durations_by, "pickup_month");
  return answers;
}

}  // namespace dataframe
