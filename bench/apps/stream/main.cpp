// stream: McCalpin's STREAM (copy, scale, add, triad) and TrackFM's sum, over three arrays of doubles. (TrackFM 4.2)
//
// Unlike STREAM's, the elements of an array differ from each other, so that a page in the wrong place shows. All that
// is computed is exact to the bit, whatever the number of threads.
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/app.hpp"
#include "common/blocks.hpp"
#include "common/random.hpp"
#include "hinterland/hint.hpp"

namespace {

using namespace apps;

constexpr double kScalar = 3;
constexpr std::size_t kBlock = kBlockBytes / sizeof(double);
constexpr std::array<const char*, 5> kKernels = {"copy", "scale", "add", "triad", "sum"};
constexpr std::array<unsigned, 5> kArraysUsed = {2, 2, 3, 3, 1};

// to[i] = operation(from[i]...)
template <typename Operation, typename... From>
void each(const Block& block, Operation operation, double* to, From*... from) {
  const std::size_t bytes = block.count * sizeof(double);
  to += block.first;
  ((from += block.first), ...);
  hl::hint(to, {.mut = true, .size = bytes});
  (hl::hint(from, {.size = bytes}), ...);
  for (std::size_t i = 0; i < block.count; ++i) to[i] = operation(from[i]...);
  // The next time round is far away, and what leaves first is the rest then: a part of the arrays stays.
  hl::cold(to, bytes);
  (hl::cold(from, bytes), ...);
}

double sum(const Block& block, const double* from) {
  hl::hint(from + block.first, {.size = block.count * sizeof(double)});
  double result = 0;
  for (std::size_t i = block.first; i < block.first + block.count; ++i) result += from[i];
  hl::cold(from + block.first, block.count * sizeof(double));
  return result;
}

// What element i is at the beginning, a multiple of 2^-8.
double first_value(std::uint64_t seed, std::size_t i) {
  return 1 + static_cast<double>(mixed(seed + i) & 255) * 0x1p-8;
}

class Stream {
 public:
  Stream(const Settings& settings, unsigned rounds)
      : settings_(settings), rounds_(rounds), size_(settings.size_bytes / 3 / sizeof(double)) {
    for (auto* array : {&a_, &b_, &c_}) *array = std::make_unique_for_overwrite<double[]>(size_);
    on_blocks([&](const Block& block) {
      for (std::size_t i = block.first; i < block.first + block.count; ++i) {
        a_[i] = first_value(settings_.seed, i);
        b_[i] = 2;
        c_[i] = 0;
      }
    });
  }

  std::size_t bytes() const { return size_ * 3 * sizeof(double); }
  std::uint64_t operations() const { return std::uint64_t{size_} * rounds_ * kKernels.size(); }

  void run() {
    double *a = a_.get(), *b = b_.get(), *c = c_.get();
    std::vector<double> sums(blocks_of(size_, kBlock));
    for (unsigned round = 0; round < rounds_; ++round) {
      timed(0, [&](const Block& at) { each(at, [](double x) { return x; }, c, a); });
      timed(1, [&](const Block& at) { each(at, [](double x) { return kScalar * x; }, b, c); });
      timed(2, [&](const Block& at) { each(at, [](double x, double y) { return x + y; }, c, a, b); });
      timed(3, [&](const Block& at) { each(at, [](double x, double y) { return x + kScalar * y; }, a, b, c); });
      timed(4, [&](const Block& at) { sums[at.number] = sum(at, a); });
      sum_ = 0;
      for (double part : sums) sum_ += part;
    }
  }

  std::uint64_t check() const {
    std::vector<std::uint64_t> parts(blocks_of(size_, kBlock));
    on_blocks([&](const Block& block) {
      std::uint64_t part = 0;
      for (std::size_t i = block.first; i < block.first + block.count; ++i)
        for (const double* array : {a_.get(), b_.get(), c_.get()})
          part = mixed(part ^ std::bit_cast<std::uint64_t>(array[i]));
      parts[block.number] = part;
    });
    std::uint64_t all = std::bit_cast<std::uint64_t>(sum_);
    for (std::uint64_t part : parts) all = mixed(all ^ part);
    return all;
  }

  // Each element by itself, without arrays.
  void verify() const {
    double wanted_sum = 0;
    for (std::size_t first = 0; first < size_; first += kBlock) {
      double part = 0;
      for (std::size_t i = first; i < std::min(size_, first + kBlock); ++i) part += verify_element(i);
      wanted_sum += part;
    }
    if (sum_ != wanted_sum) throw std::runtime_error("--verify: the sum is wrong");
  }

  Json figures() const {
    Json rates;
    for (std::size_t kernel = 0; kernel < kKernels.size(); ++kernel)
      rates[kKernels[kernel]] =
          static_cast<double>(size_ * sizeof(double) * kArraysUsed[kernel]) / best_seconds_[kernel];
    return {{"rounds", rounds_}, {"best_bytes_per_second", rates}};
  }

 private:
  template <typename Body>
  void on_blocks(Body&& body) const {
    on_threads(settings_.threads, [&](unsigned i) { for_blocks(size_, kBlock, i, settings_.threads, body); });
  }

  template <typename Body>
  void timed(std::size_t kernel, Body&& body) {
    auto begin = std::chrono::steady_clock::now();
    on_blocks(body);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    double& best = best_seconds_[kernel];
    if (best == 0 || seconds < best) best = seconds;
  }

  double verify_element(std::size_t i) const {
    double a = first_value(settings_.seed, i), b = 0, c = 0;
    for (unsigned round = 0; round < rounds_; ++round) {
      b = kScalar * a;
      c = a + b;
      a = b + kScalar * c;
    }
    if (a_[i] != a || b_[i] != b || c_[i] != c)
      throw std::runtime_error("--verify: element " + std::to_string(i) + " of the arrays is wrong");
    return a;
  }

  const Settings& settings_;
  unsigned rounds_;
  std::size_t size_;  // of each array, in elements
  std::unique_ptr<double[]> a_, b_, c_;
  double sum_ = 0;
  std::array<double, kKernels.size()> best_seconds_{};
};

}  // namespace

int main(int argc, char** argv) {
  App app("stream", "Goes through three arrays as STREAM does");
  unsigned rounds = 5;
  app.options().number("--rounds", rounds, "of all kernels", 1, 10);
  return app.run(argc, argv, [&](const Settings& settings) {
    Stream stream(settings, rounds);
    app.measure([&] { stream.run(); });
    if (settings.verify) stream.verify();
    return Outcome{.footprint_bytes = stream.bytes(),
                   .operations = stream.operations(),
                   .check = stream.check(),
                   .figures = stream.figures()};
  });
}
