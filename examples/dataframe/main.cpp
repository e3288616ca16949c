// A data frame that is larger than what is local: trips from a file, as docs/dataframe.md has it.
//
//     dataframe [ROWS]      writes a file of so many trips, and analyses it
//
// The same with all of it local; under `hinterland run --local 16M --far tcp://...` most of it is far.
#include <hinterland/csv.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Trips that anybody can compute again.
void write_trips(const char* path, long rows) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::perror(path);
    std::exit(1);
  }
  std::fprintf(file, "pickup,dropoff,fare,company\n");
  for (long i = 0; i < rows; ++i) {
    const long minute = i * 7 % 1440, took = 3 + i * 31 % 57;
    std::fprintf(file, "2016-03-%02ld %02ld:%02ld:00,2016-03-%02ld %02ld:%02ld:30,%ld.%02ld,\"Cabs, %ld & Sons\"\n",
                 1 + i % 28, minute / 60, minute % 60, 1 + i % 28, minute / 60,
                 minute % 60 + (59 - minute % 60) % took, 2 + i * 13 % 120, i % 100, i % 5);
  }
  if (std::fclose(file) != 0) {
    std::perror(path);
    std::exit(1);
  }
}

int analyse(const std::string& path) {
  using hl::far::aggregate, hl::far::compare, hl::far::csv, hl::far::dataframe;
  dataframe trips = hl::far::read_csv(
      path, {{"pickup", csv::time}, {"dropoff", csv::time}, {"fare", csv::float64}, {"company", csv::text}});
  auto minutes = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / 60; };
  trips.set("minutes",
            hl::far::transform(minutes, trips.get<std::int64_t>("pickup"), trips.get<std::int64_t>("dropoff")));
  dataframe dear = trips.where("fare", compare::greater, 100);
  std::optional<double> typical = hl::far::median(dear.get<double>("minutes"));
  dataframe companies = trips.group_by("company", {{aggregate::count}, {aggregate::mean, "fare"}});
  companies.sort_by("mean(fare)", hl::far::order::descending);

  std::printf("%zu trips, %zu dear ones, of which the middle one took %.2f minutes\n", trips.rows(), dear.rows(),
              typical.value_or(0));
  for (std::size_t row = 0; row < companies.rows(); ++row)
    std::printf("%s: %lld trips, %.4f\n", std::string(companies.get<hl::far::text>("company")[row]).c_str(),
                static_cast<long long>(companies.get<std::int64_t>("count")[row]),
                companies.get<double>("mean(fare)")[row]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long rows = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 500'000;
  const char* const folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/hinterland-trips-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) {
    std::perror(path.c_str());
    return 1;
  }
  close(file);
  write_trips(path.c_str(), rows);
  int status = 1;
  try {
    status = analyse(path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dataframe: %s\n", error.what());
  }
  unlink(path.c_str());
  return status;
}
