// Keeps a share of samples, each with the number of faults that it then stands for.
//
// Of each 1/share samples one is kept, drawn at random. So the sum of what the kept ones stand for is right to within
// one of them, however few they are, and a program whose faults come in cycles is not always caught at the same
// place.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace hinterland::trace {

class Thinning {
 public:
  // Above 0, at most 1; for the samples from here on.
  void set_share(double share) { share_ = share; }

  // The faults that a sample stands for, given that it was taken of one in `weight` (1 or more). 0: it is not kept.
  std::uint64_t faults_of_next(double weight) {
    position_ += share_;
    double faults = 0;
    for (; drawn_ < position_; drawn_ = std::floor(drawn_) + 1 + uniform_(random_)) faults += weight / share_;
    if (faults == 0) return 0;
    faults += remainder_;
    double whole = std::floor(faults);
    remainder_ = faults - whole;
    return static_cast<std::uint64_t>(whole);
  }

 private:
  double share_ = 1;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_;
  // The samples lie side by side on a line, each as wide as the share was; in each unit of the line one point is
  // drawn, and the sample on which it falls is kept.
  double position_ = 0, drawn_ = uniform_(random_);
  double remainder_ = 0;  // of a fault, left by rounding
};

}  // namespace hinterland::trace
