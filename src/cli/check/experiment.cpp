#include "cli/check/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/check.hpp"

namespace hinterland::cli {
namespace {

constexpr std::size_t kGroupsMax = 8;
constexpr double kDeviations = 3;

using Matrix = std::vector<std::vector<double>>;

double sign(bool on) { return on ? 1 : -1; }

// Of columns: on in both or in neither counts one, else minus one.
double likeness(const std::vector<Pattern>& patterns, std::size_t one, std::size_t other) {
  double sum = 0;
  for (const Pattern& pattern : patterns) sum += sign(pattern[one]) * sign(pattern[other]);
  return std::abs(sum);
}

double greatest_likeness(const std::vector<Pattern>& patterns, std::size_t groups) {
  double greatest = 0;
  for (std::size_t i = 0; i < groups; ++i)
    for (std::size_t j = 0; j < i; ++j) greatest = std::max(greatest, likeness(patterns, i, j));
  return greatest;
}

// Shuffled by hand, because std::shuffle may differ from library to library.
std::vector<Pattern> drawn(std::size_t pairs, std::size_t groups, std::mt19937& random) {
  std::vector<Pattern> patterns(pairs, Pattern(groups));
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<bool> column(pairs);
    for (std::size_t i = 0; i < pairs; ++i) column[i] = i % 2 == 0;
    for (std::size_t i = pairs; i > 1; --i) {
      const std::size_t other = random() % i;
      const bool kept = column[i - 1];
      column[i - 1] = column[other];
      column[other] = kept;
    }
    for (std::size_t i = 0; i < pairs; ++i) patterns[i][group] = column[i];
  }
  return patterns;
}

// In place, by Gauss and Jordan, with the largest of a column as the pivot. False where there is no inverse.
bool invert(Matrix& matrix) {
  const std::size_t size = matrix.size();
  Matrix inverse(size, std::vector<double>(size, 0));
  for (std::size_t i = 0; i < size; ++i) inverse[i][i] = 1;
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < size; ++row)
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    if (std::abs(matrix[pivot][column]) < 1e-9) return false;
    std::swap(matrix[pivot], matrix[column]);
    std::swap(inverse[pivot], inverse[column]);
    const double scale = matrix[column][column];
    for (std::size_t i = 0; i < size; ++i) matrix[column][i] /= scale, inverse[column][i] /= scale;
    for (std::size_t row = 0; row < size; ++row) {
      if (row == column) continue;
      const double times = matrix[row][column];
      for (std::size_t i = 0; i < size; ++i)
        matrix[row][i] -= times * matrix[column][i], inverse[row][i] -= times * inverse[column][i];
    }
  }
  matrix = std::move(inverse);
  return true;
}

// How alike the columns are, all against all.
Matrix products_of(const std::vector<Pattern>& patterns, std::size_t groups) {
  Matrix products(groups, std::vector<double>(groups, 0));
  for (const Pattern& pattern : patterns)
    for (std::size_t i = 0; i < groups; ++i)
      for (std::size_t j = 0; j < groups; ++j) products[i][j] += sign(pattern[i]) * sign(pattern[j]);
  return products;
}

double rest_of(const Pattern& pattern, double difference, const std::vector<Effect>& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i) difference -= sign(pattern[i]) * effects[i].mean;
  return difference;
}

}  // namespace

std::size_t groups_for(std::size_t pairs) { return std::min(kGroupsMax, std::max<std::size_t>(pairs / 2, 1)); }

std::vector<Pattern> patterns_for(std::size_t pairs, std::size_t groups) {
  constexpr int kDraws = 200;
  std::mt19937 random(static_cast<std::uint32_t>(pairs * 1000 + groups));
  std::vector<Pattern> best = drawn(pairs, groups, random);
  double least = greatest_likeness(best, groups);
  for (int i = 1; i < kDraws && least > 0; ++i) {
    std::vector<Pattern> next = drawn(pairs, groups, random);
    const double likeness_of_next = greatest_likeness(next, groups);
    if (likeness_of_next >= least) continue;
    least = likeness_of_next;
    best = std::move(next);
  }
  return best;
}

double Effect::share() const { return std::expm1(mean); }
double Effect::deviation_share() const { return std::exp(mean) * deviation; }

std::vector<Effect> effects_of(const std::vector<Pattern>& patterns, const std::vector<double>& differences) {
  HL_CHECK(!patterns.empty() && patterns.size() == differences.size() && patterns.size() > patterns[0].size());
  const std::size_t pairs = patterns.size(), groups = patterns[0].size();
  Matrix inverse = products_of(patterns, groups);
  HL_CHECK(invert(inverse));  // patterns_for() sees to it
  std::vector<double> sums(groups, 0);
  for (std::size_t pair = 0; pair < pairs; ++pair)
    for (std::size_t i = 0; i < groups; ++i) sums[i] += sign(patterns[pair][i]) * differences[pair];
  std::vector<Effect> effects(groups);
  for (std::size_t i = 0; i < groups; ++i)
    effects[i].mean = std::inner_product(sums.begin(), sums.end(), inverse[i].begin(), 0.0);
  double squares = 0;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const double rest = rest_of(patterns[pair], differences[pair], effects);
    squares += rest * rest;
  }
  const double variance = squares / static_cast<double>(pairs - groups);
  for (std::size_t i = 0; i < groups; ++i) effects[i].deviation = std::sqrt(variance * inverse[i][i]);
  return effects;
}

Effect effect_of(const std::vector<double>& differences) {
  return effects_of(std::vector<Pattern>(differences.size(), Pattern{true}), differences)[0];
}

Verdict verdict_of(const Effect& effect) {
  if (std::abs(effect.mean) <= kDeviations * effect.deviation) return Verdict::not_known;
  return effect.mean > 0 ? Verdict::loses : Verdict::gains;
}

std::vector<std::vector<std::size_t>> groups_of(const std::vector<Weight>& hints, std::size_t most) {
  std::vector<std::size_t> order(hints.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return hints[a].passes > hints[b].passes; });
  std::vector<std::vector<std::size_t>> groups;
  const std::size_t alone = order.size() <= most ? order.size() : most - std::min<std::size_t>(most, 2);
  for (std::size_t i = 0; i < alone; ++i) groups.push_back({order[i]});
  std::vector<std::size_t> rest(order.begin() + static_cast<std::ptrdiff_t>(alone), order.end());
  if (rest.empty()) return groups;
  const auto ratio = [&](std::size_t i) {
    return static_cast<double>(hints[i].misses) / static_cast<double>(std::max<std::uint64_t>(hints[i].passes, 1));
  };
  std::ranges::stable_sort(rest, [&](std::size_t a, std::size_t b) { return ratio(a) < ratio(b); });
  const std::size_t half = most >= 2 ? rest.size() / 2 : 0;
  const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(half);
  if (half > 0) groups.emplace_back(rest.begin(), middle);
  groups.emplace_back(middle, rest.end());
  return groups;
}

}  // namespace hinterland::cli
