// Which groups of hints are worth it, by pairs of runs: in each pair every group is on in one run and off in the
// other, in a pattern of its own (docs/adr/0069-hints-are-judged-by-whole-runs.md). All is pure computing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hinterland::cli {

// Of a pair's first run: which groups are on. Its second run has the others.
using Pattern = std::vector<bool>;

// More groups than this could not be told apart with so many pairs.
std::size_t groups_for(std::size_t pairs);

// In each column as many on as off (one more or less where pairs are odd), and columns as little alike as 200 draws
// find. The same for the same numbers.
std::vector<Pattern> patterns_for(std::size_t pairs, std::size_t groups);

// What a group does to the program's time: the logarithm of its time with the group on, less that with it off.
struct Effect {
  double mean = 0;
  double deviation = 0;  // standard deviation of the mean

  double share() const;            // of the time, 0.04 when on takes 4 % more
  double deviation_share() const;  // likewise
};

// `differences`: of each pair, the logarithm of the time of its first run less that of its second. Least squares;
// what the groups do not explain is the deviation. There must be more pairs than groups.
std::vector<Effect> effects_of(const std::vector<Pattern>& patterns, const std::vector<double>& differences);
// Of one thing done two ways, by its pairs' differences; at least two.
Effect effect_of(const std::vector<double>& differences);

enum class Verdict : std::uint8_t { loses, gains, not_known };
// By three standard deviations.
Verdict verdict_of(const Effect& effect);

// What is known of a hint before it is measured.
struct Weight {
  std::uint64_t passes = 0, misses = 0;
};
// Indices of hints, in at most `most` groups, the largest first. What is passed most is alone, for that is what can
// cost; the rest is split by how seldom its pages were missing, so that those of a group are alike.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Weight>& hints, std::size_t most);

}  // namespace hinterland::cli
