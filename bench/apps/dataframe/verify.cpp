// The nine questions asked row by row, with the standard library's maps, for --verify.
#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "dataframe/queries.hpp"

namespace dataframe {
namespace {

class Wanted {
 public:
  explicit Wanted(const Table& trips)
      : vendors_(trips.get<std::int32_t>("VendorID")),
        passengers_(trips.get<std::int32_t>("passenger_count")),
        pickups_(trips.get<Time>("tpep_pickup_datetime")),
        dropoffs_(trips.get<Time>("tpep_dropoff_datetime")),
        flags_(trips.get<Small>("store_and_fwd_flag")),
        longitudes1_(trips.get<double>("pickup_longitude")),
        latitudes1_(trips.get<double>("pickup_latitude")),
        longitudes2_(trips.get<double>("dropoff_longitude")),
        latitudes2_(trips.get<double>("dropoff_latitude")) {
    for (std::size_t row = 0; row < vendors_.size(); ++row) look_at(row);
  }

  std::vector<std::vector<double>> answers() {
    const auto rows = static_cast<double>(vendors_.size());
    std::vector<double> first = {rows}, kept = {static_cast<double>(at_once_) / rows};
    for (auto& [vendor, count] : passengers_of_) first.push_back(vendor);
    for (int vendor : keeping_) kept.push_back(vendor);
    std::vector<double> times = {static_cast<double>(latest_), static_cast<double>(earliest_)};
    for (auto* counts : {&hours_, &days_, &months_}) append(times, *counts);
    return {first,
            flat(passengers_of_[1]),
            flat(passengers_of_[2]),
            {static_cast<double>(sum_) / rows, static_cast<double>(shortest_), static_cast<double>(longest_)},
            kept,
            {static_cast<double>(far_)},
            times,
            medians(by_day_),
            medians(by_month_)};
  }

 private:
  using Count = std::map<int, std::uint64_t>;

  void look_at(std::size_t row) {
    ++passengers_of_[vendors_[row]][passengers_[row]];
    const Time duration = dropoffs_[row] - pickups_[row];
    sum_ += duration;
    shortest_ = std::min(shortest_, duration);
    longest_ = std::max(longest_, duration);
    at_once_ += flags_[row] == 'N';
    if (flags_[row] == 'Y') keeping_.insert(vendors_[row]);
    far_ += haversine(longitudes1_[row], latitudes1_[row], longitudes2_[row], latitudes2_[row]) > 100;
    earliest_ = std::min(earliest_, pickups_[row]);
    latest_ = std::max(latest_, pickups_[row]);
    std::tm date{};
    gmtime_r(&pickups_[row], &date);
    ++hours_[date.tm_hour];
    ++days_[date.tm_mday];
    ++months_[date.tm_mon + 1];
    by_day_[date.tm_mday].push_back(duration);
    by_month_[date.tm_mon + 1].push_back(duration);
  }

  static void append(std::vector<double>& numbers, const Count& counts) {
    for (auto& [value, count] : counts) numbers.insert(numbers.end(), {double(value), static_cast<double>(count)});
  }
  static std::vector<double> flat(const Count& counts) {
    std::vector<double> numbers;
    append(numbers, counts);
    return numbers;
  }
  static std::vector<double> medians(std::map<int, std::vector<Time>>& groups) {
    std::vector<double> numbers;
    for (auto& [key, values] : groups) {
      std::ranges::sort(values);
      const Time low = values[(values.size() - 1) / 2], high = values[values.size() / 2];
      numbers.insert(numbers.end(), {double(key), static_cast<double>(low + high) / 2});
    }
    return numbers;
  }

  const Column<std::int32_t>&vendors_, &passengers_;
  const Column<Time>&pickups_, &dropoffs_;
  const Column<Small>& flags_;
  const Column<double>&longitudes1_, &latitudes1_, &longitudes2_, &latitudes2_;
  std::map<int, Count> passengers_of_;
  Time sum_ = 0, shortest_ = std::numeric_limits<Time>::max(), longest_ = std::numeric_limits<Time>::min();
  Time earliest_ = shortest_, latest_ = longest_;
  std::uint64_t at_once_ = 0, far_ = 0;
  std::set<int> keeping_;
  Count hours_, days_, months_;
  std::map<int, std::vector<Time>> by_day_, by_month_;
};

}  // namespace

void verify(const Table& trips, const std::vector<Answer>& answers) {
  std::vector<std::vector<double>> wanted = Wanted(trips).answers();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (answers.at(i).numbers != wanted[i])
      throw std::runtime_error("--verify: the answer about '" + answers[i].question + "' is wrong");
}

}  // namespace dataframe
