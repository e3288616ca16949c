// Nine questions about taxi trips: those of the notebook that AIFM, TrackFM and Eden run. (AIFM 8.1.2, Eden 5.3.1)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataframe/operations.hpp"
#include "dataframe/table.hpp"

namespace dataframe {

// Numbers in an order that the question gives; they are exact.
struct Answer {
  std::string question;
  std::vector<double> numbers;
  double seconds = 0;
};

// Asks all nine, each of which may add columns to the trips that later ones use.
std::vector<Answer> ask_all(const Crew& crew, Table& trips);

// The great circle between two places, in km.
double haversine(double longitude1, double latitude1, double longitude2, double latitude2);

// The questions again, row by row and without the library. Throws std::runtime_error when an answer differs.
void verify(const Table& trips, const std::vector<Answer>& answers);

}  // namespace dataframe
