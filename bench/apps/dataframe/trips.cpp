#include "dataframe/trips.hpp"

#include <chrono>
#include <cmath>

#include "common/random.hpp"

namespace dataframe {
namespace {

using std::chrono::sys_days;

struct Trip {
  std::array<double, kSchema.size()> fields;  // in the order of the schema; times, letters and integers as numbers
};

// How busy each hour of the day is; in thousandths.
constexpr std::array<int, 24> kHours = {36, 27, 20, 15, 12, 10, 22, 38, 46, 46, 45, 46,
                                        49, 48, 51, 49, 43, 51, 61, 62, 58, 57, 57, 51};

// One of the values, by weights in thousandths.
template <std::size_t N>
std::size_t chosen(apps::Random& random, const std::array<int, N>& weights) {
  auto left = static_cast<int>(random.below(1000));
  for (std::size_t i = 0; i < N; ++i)
    if ((left -= weights[i]) < 0) return i;
  return 0;
}

// About normal: twelve draws would be nearer to it, four do.
double normal(apps::Random& random) {
  return (random.unit() + random.unit() + random.unit() + random.unit() - 2) * std::sqrt(3.0);
}

double cents(double dollars) { return std::round(dollars * 100) / 100; }

Time pickup_in(apps::Random& random, unsigned month) {
  using namespace std::chrono;
  const sys_days first{year{2016} / std::chrono::month{month} / 1};
  const sys_days next{year{2016} / std::chrono::month{month + 1} / 1};
  const Time day = (first.time_since_epoch().count() +
                    static_cast<Time>(random.below(static_cast<std::uint64_t>((next - first).count()))));
  return day * 86400 + static_cast<Time>(chosen(random, kHours)) * 3600 + static_cast<Time>(random.below(3600));
}

struct Place {
  double longitude, latitude;
};

Place near(apps::Random& random, Place where, double spread) {
  return {where.longitude + spread * normal(random), where.latitude + spread * normal(random)};
}

Trip made_up(apps::Random& random, unsigned month) {
  const bool airport = random.below(1000) < 25;
  const double miles = airport ? 17 + 2 * normal(random) : std::exp(0.53 + 0.8 * normal(random));
  const Time pickup = pickup_in(random, month);
  Time seconds = static_cast<Time>(miles * 200 * std::exp(0.35 * normal(random))) + 60;
  const int vendor = random.below(1000) < 534 ? 2 : 1;
  if (vendor == 2 && random.below(1000) < 2) seconds = 86400 - static_cast<Time>(random.below(600));  // never stopped
  Place from = near(random, {-73.98, 40.755}, 0.018);
  Place to = airport ? near(random, {-73.785, 40.645}, 0.006) : near(random, from, 0.0085 * miles);
  if (random.below(1000) < 15) from = {0, 0};  // no satellite was seen
  if (random.below(1000) < 15) to = {0, 0};
  const bool card = random.below(1000) < 660;
  const double fare = airport ? 52 : 2.5 + 0.5 * std::round(miles * 4.2 + static_cast<double>(seconds % 3600) / 300);
  const double extra = 0.5 * static_cast<double>(random.below(3)), tolls = airport ? 5.54 : 0;
  const double tip = card ? cents(fare * (0.1 + 0.2 * random.unit())) : 0;
  return {{static_cast<double>(vendor), static_cast<double>(pickup), static_cast<double>(pickup + seconds),
           static_cast<double>(chosen(random, std::array{1, 709, 144, 41, 20, 53, 32})), cents(miles), from.longitude,
           from.latitude, airport ? 2.0 : 1.0, random.below(1000) < 6 ? double{'Y'} : double{'N'}, to.longitude,
           to.latitude, card ? 1.0 : 2.0, fare, extra, 0.5, tip, tolls, 0.3, fare + extra + 0.5 + tip + tolls + 0.3}};
}

}  // namespace

AnyColumn column_of(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return Column<std::int32_t>();
    case Kind::time:
      return Column<Time>();
    case Kind::letter:
      return Column<Small>();
    case Kind::number:
      break;
  }
  return Column<double>();
}

Table made_up_trips(const Crew& crew, std::size_t rows, std::uint64_t seed) {
  std::vector<AnyColumn> columns;
  for (const Field& field : kSchema) {
    columns.push_back(column_of(field.kind));
    std::visit([&](auto& values) { values.resize(rows); }, columns.back());
  }
  crew.on_blocks(rows, [&](const Block& block) {
    apps::Random random(seed, block.number);
    std::vector<Trip> trips;
    for (std::size_t row = block.first; row < block.first + block.count; ++row)
      trips.push_back(made_up(random, static_cast<unsigned>(row * 6 / rows) + 1));
    for (std::size_t field = 0; field < columns.size(); ++field)
      std::visit(
          [&](auto& values) {
            for (std::size_t i = 0; i < block.count; ++i)
              values[block.first + i] = static_cast<std::decay_t<decltype(values[0])>>(trips[i].fields[field]);
          },
          columns[field]);
  });
  Table table;
  for (std::size_t field = 0; field < columns.size(); ++field)
    table.add(kSchema[field].name, std::move(columns[field]));
  return table;
}

}  // namespace dataframe
