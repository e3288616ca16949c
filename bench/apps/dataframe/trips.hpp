// Taxi trips of New York, in the form of the public files yellow_tripdata_2016-01.csv to -06.csv.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "dataframe/operations.hpp"
#include "dataframe/table.hpp"

namespace dataframe {

enum class Kind { integer, time, letter, number };

struct Field {
  const char* name;
  Kind kind;
};

inline constexpr std::array<Field, 19> kSchema = {{
    {"VendorID", Kind::integer},
    {"tpep_pickup_datetime", Kind::time},
    {"tpep_dropoff_datetime", Kind::time},
    {"passenger_count", Kind::integer},
    {"trip_distance", Kind::number},
    {"pickup_longitude", Kind::number},
    {"pickup_latitude", Kind::number},
    {"RatecodeID", Kind::integer},
    {"store_and_fwd_flag", Kind::letter},
    {"dropoff_longitude", Kind::number},
    {"dropoff_latitude", Kind::number},
    {"payment_type", Kind::integer},
    {"fare_amount", Kind::number},
    {"extra", Kind::number},
    {"mta_tax", Kind::number},
    {"tip_amount", Kind::number},
    {"tolls_amount", Kind::number},
    {"improvement_surcharge", Kind::number},
    {"total_amount", Kind::number},
}};

// Bytes of a row.
inline constexpr std::size_t kRowBytes =
    4 * sizeof(std::int32_t) + 2 * sizeof(Time) + sizeof(Small) + 12 * sizeof(double);

// Made up, with the distributions of the real ones, as far as they are simple: the half year in order of months, days
// and hours as they are busy; short trips, a few of a day; faulty coordinates of zero.
Table made_up_trips(const Crew& crew, std::size_t rows, std::uint64_t seed);

// Out of such a file. Columns may come in any order, and others are left out. Throws std::invalid_argument with file,
// line and column for what is not as it should be.
Table trips_of_csv(const std::string& file);

// An empty column of that kind.
AnyColumn column_of(Kind kind);

}  // namespace dataframe
