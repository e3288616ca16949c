// aifm_dataframe: the analysis of taxi trips of AIFM's figure 7, on a data frame of far columns. Prints as JSON how
// long each of its steps took, and a number that follows from all results, which is the same wherever memory was.
// bench/aifm/dataframe runs it with shares of its memory local.
#include <sys/resource.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "command/options.hpp"
#include "hinterland/csv.hpp"

namespace {

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

using hl::far::aggregate;
using hl::far::column;
using hl::far::compare;
using hl::far::dataframe;
using hl::far::text;
using hl::far::transform;

struct Work {
  std::uint64_t rows = 1'000'000;
  std::string csv;
};

std::uint64_t g_digest = 0;  // of all results, in their order
void note(std::uint64_t result) { g_digest = (g_digest ^ result) * 0x9e3779b97f4a7c15 + 1; }
void note(std::int64_t result) { note(static_cast<std::uint64_t>(result)); }
void note(double result) { note(std::bit_cast<std::uint64_t>(result)); }
template <typename T>
void note_all(const column<T>& results) {
  for (const T& each : results) note(each);
}

// Trips as in New York: most are short, some last hours, and each tenth has its flag set.
dataframe generated(std::uint64_t rows) {
  std::mt19937_64 random(7);
  const auto part = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const std::size_t count = rows;
  column<std::int32_t> vendor(count), passengers(count);
  column<std::int64_t> pickup(count), dropoff(count);
  column<double> coordinates[4] = {column<double>(count), column<double>(count), column<double>(count),
                                   column<double>(count)};
  column<text> flag;
  flag.reserve(count);
  for (std::size_t row = 0; row < count; ++row) {
    vendor[row] = 1 + static_cast<std::int32_t>(random() % 2);
    passengers[row] = static_cast<std::int32_t>(random() % 7);
    pickup[row] = 1451606400 + static_cast<std::int64_t>(random() % (182 * 86400));
    dropoff[row] = pickup[row] + 60 + static_cast<std::int64_t>(-600 * std::log(1 - part()));
    const double far = random() % 5000 == 0 ? 2 : 0.05;
    for (int end = 0; end < 2; ++end) {
      coordinates[2 * end][row] = 40.75 + far * (part() - 0.5);
      coordinates[2 * end + 1][row] = -73.97 + far * (part() - 0.5);
    }
    flag.push_back(random() % 10 == 0 ? "Y" : "N");
  }
  dataframe trips;
  trips.set("vendor_id", std::move(vendor));
  trips.set("passenger_count", std::move(passengers));
  trips.set("pickup_datetime", std::move(pickup));
  trips.set("dropoff_datetime", std::move(dropoff));
  static const char* const names[] = {"pickup_latitude", "pickup_longitude", "dropoff_latitude", "dropoff_longitude"};
  for (int i = 0; i < 4; ++i) trips.set(names[i], std::move(coordinates[i]));
  trips.set("store_and_fwd_flag", std::move(flag));
  return trips;
}

// The file of Kaggle's "NYC Taxi Trip Duration", or one like it.
dataframe read(const std::string& path) {
  using hl::far::csv;
  dataframe trips = hl::far::read_csv(path, {{"vendor_id", csv::int64},
                                             {"passenger_count", csv::int64},
                                             {"pickup_datetime", csv::time},
                                             {"dropoff_datetime", csv::time},
                                             {"pickup_latitude", csv::float64},
                                             {"pickup_longitude", csv::float64},
                                             {"dropoff_latitude", csv::float64},
                                             {"dropoff_longitude", csv::float64},
                                             {"store_and_fwd_flag", csv::text}});
  for (const char* name : {"vendor_id", "passenger_count"})
    trips.set(name, transform([](std::int64_t each) { return static_cast<std::int32_t>(each); },
                              trips.get<std::int64_t>(name)));
  return trips;
}

double haversine_km(double latitude_1, double longitude_1, double latitude_2, double longitude_2) {
  constexpr double radian = std::numbers::pi / 180, earth_km = 6371;
  const double north = std::sin((latitude_2 - latitude_1) * radian / 2),
               east = std::sin((longitude_2 - longitude_1) * radian / 2);
  const double a = north * north + std::cos(latitude_1 * radian) * std::cos(latitude_2 * radian) * east * east;
  return 2 * earth_km * std::asin(std::sqrt(a));
}

// --- the steps, as AIFM's application has them
// -----------------------------------------------------------------------

void vendors(dataframe& trips) {
  for (const std::int32_t vendor : hl::far::unique(trips.get<std::int32_t>("vendor_id"))) {
    const dataframe theirs = trips.where("vendor_id", compare::equal, vendor);
    note_all(theirs.group_by("passenger_count", {{aggregate::count}}).get<std::int64_t>("count"));
  }
}

void duration(dataframe& trips) {
  trips.set("duration",
            transform([](std::int64_t from, std::int64_t to) { return to - from; },
                      trips.get<std::int64_t>("pickup_datetime"), trips.get<std::int64_t>("dropoff_datetime")));
  const auto& durations = trips.get<std::int64_t>("duration");
  note(*hl::far::min(durations));
  note(*hl::far::max(durations));
  note(*hl::far::mean(durations));
  note(*hl::far::median(durations));
}

void flags(dataframe& trips) {
  note_all(trips.group_by("store_and_fwd_flag", {{aggregate::count}}).get<std::int64_t>("count"));
  for (const std::int32_t vendor :
       hl::far::unique(trips.where("store_and_fwd_flag", compare::equal, "Y").get<std::int32_t>("vendor_id")))
    note(std::int64_t{vendor});
}

void distance(dataframe& trips) {
  trips.set("distance",
            transform(haversine_km, trips.get<double>("pickup_latitude"), trips.get<double>("pickup_longitude"),
                      trips.get<double>("dropoff_latitude"), trips.get<double>("dropoff_longitude")));
  note(std::uint64_t{hl::far::count(trips.get<double>("distance"), compare::greater, 100.0)});
  note_all(trips.where("distance", compare::greater, 100).get<std::int64_t>("duration"));
  note(*hl::far::mean(trips.get<double>("distance")));
}

void calendar(dataframe& trips) {
  using namespace std::chrono;
  const auto& pickup = trips.get<std::int64_t>("pickup_datetime");
  const auto day_of = [](std::int64_t time) { return floor<days>(sys_seconds(seconds(time))); };
  trips.set("month", transform(
                         [&](std::int64_t time) {
                           const year_month_day day(day_of(time));
                           return static_cast<std::int32_t>(static_cast<unsigned>(day.month()));
                         },
                         pickup));
  trips.set(
      "weekday",
      transform([&](std::int64_t time) { return static_cast<std::int32_t>(weekday(day_of(time)).iso_encoding()); },
                pickup));
}

void durations_by(dataframe& trips) {
  for (const char* by : {"month", "weekday"}) {
    const dataframe made = trips.group_by(by, {{aggregate::count},
                                               {aggregate::mean, "duration"},
                                               {aggregate::max, "duration"},
                                               {aggregate::median, "duration"},
                                               {aggregate::mean, "distance"}});
    note_all(made.get<std::int64_t>("count"));
    note_all(made.get<double>("mean(duration)"));
    note_all(made.get<std::int64_t>("median(duration)"));
    note_all(made.get<double>("mean(distance)"));
  }
}

void longest(dataframe& trips) {
  trips.sort_by("duration", hl::far::order::descending);
  note_all(trips.slice(0, 1000).get<double>("distance"));
}

double s_since(std::uint64_t start) { return static_cast<double>(hinterland::now_ns() - start) / 1e9; }

hinterland::Json analyse(const Work& work) {
  hinterland::Json steps = hinterland::Json::object();
  std::uint64_t start = hinterland::now_ns();
  dataframe trips = work.csv.empty() ? generated(work.rows) : read(work.csv);
  const double load_s = s_since(start);
  double total_s = 0;
  const std::pair<const char*, void (*)(dataframe&)> all[] = {
      {"vendors", vendors},   {"duration", duration},         {"flags", flags},    {"distance", distance},
      {"calendar", calendar}, {"durations_by", durations_by}, {"longest", longest}};
  for (const auto& [name, step] : all) {
    start = hinterland::now_ns();
    step(trips);
    const double took_s = s_since(start);
    steps[name] = took_s;
    total_s += took_s;
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {{"schema_version", 1}, {"program", "aifm_dataframe"},
          {"unit", "s"},         {"rows", trips.rows()},
          {"load_s", load_s},    {"total_s", total_s},
          {"steps", steps},      {"peak_resident_bytes", static_cast<std::uint64_t>(used.ru_maxrss) * 1024},
          {"digest", g_digest}};
}

}  // namespace

int main(int argc, char** argv) {
  Work work;
  bench::Options options("aifm_dataframe", "Analyses taxi trips, and prints as JSON the seconds of each step");
  options.number("--rows", work.rows, "trips that are generated", 1, UINT64_C(1) << 40);
  options.text("--csv", work.csv, "or read from this file, of Kaggle's NYC Taxi Trip Duration");
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (kDebugBuild) {
    std::fputs("aifm_dataframe: this is a debug build, and its figures mean nothing. Build with: make bench-build\n",
               stderr);
    return 2;
  }
  try {
    std::puts(analyse(work).dump(1).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aifm_dataframe: %s\n", error.what());
    return 1;
  }
  return 0;
}
