#include "kmeans/clusters.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/random.hpp"
#include "hinterland/hint.hpp"

namespace kmeans {
namespace {

using apps::Block;

constexpr double kGrid = 1024;

float on_grid(double value) { return static_cast<float>(std::nearbyint(value * kGrid) / kGrid); }

// About normal, of variance 1: four draws of even distribution.
double spread(apps::Random& random) {
  return (random.unit() + random.unit() + random.unit() + random.unit() - 2) * std::sqrt(3.0);
}

float distance(const Point& a, const Point& b) {
  float sum = 0;
  for (std::size_t d = 0; d < kDimensions; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

struct Nearest {
  std::size_t cluster = 0;
  float distance = std::numeric_limits<float>::max();
};

// The first of those that are equally near.
Nearest nearest(const Point& point, const std::vector<Point>& centroids) {
  Nearest best;
  for (std::size_t i = 0; i < centroids.size(); ++i)
    if (float away = distance(point, centroids[i]); away < best.distance) best = {i, away};
  return best;
}

}  // namespace

template <typename Body>
void Clusters::on_blocks(Body&& body) const {
  apps::on_threads(settings_.threads, [&](unsigned i) {
    apps::for_blocks(size_, kBlock, i, settings_.threads, [&](const Block& block) { body(i, block); });
  });
}

Clusters::Clusters(const apps::Settings& settings, unsigned clusters)
    : settings_(settings), size_(settings.size_bytes / (sizeof(Point) + sizeof(Label))) {
  if (size_ < clusters) throw std::invalid_argument("--size is too small for so many clusters");
  points_ = std::make_unique_for_overwrite<Point[]>(size_);
  labels_ = std::make_unique_for_overwrite<Label[]>(size_);
  std::vector<Point> centres(clusters);
  apps::Random random(settings.seed);
  for (Point& centre : centres)
    for (float& x : centre) x = on_grid(random.unit() * 100 - 50);
  on_blocks([&](unsigned, const Block& block) {
    apps::Random own(settings.seed, block.number + 1);
    for (std::size_t i = block.first; i < block.first + block.count; ++i) {
      const Point& centre = centres[own.below(clusters)];
      for (std::size_t d = 0; d < kDimensions; ++d) points_[i][d] = on_grid(centre[d] + 8 * spread(own));
      labels_[i] = 0;
    }
  });
  // Where they begin: points that lie far apart in memory (Forgy).
  for (unsigned i = 0; i < clusters; ++i) centroids_.push_back(points_[size_ / clusters * i]);
}

void Clusters::assign(const Block& block, Part& part, double& width) {
  hl::hint(&points_[block.first], {.size = block.count * sizeof(Point)});
  hl::hint(&labels_[block.first], {.mut = true, .size = block.count * sizeof(Label)});
  width = 0;
  for (std::size_t i = block.first; i < block.first + block.count; ++i) {
    const Point& point = points_[i];
    Nearest best = nearest(point, centroids_);
    width += best.distance;
    part.moved += labels_[i] != best.cluster;
    labels_[i] = static_cast<Label>(best.cluster);
    Sum& sum = part.sums[best.cluster];
    for (std::size_t d = 0; d < kDimensions; ++d) sum.of[d] += point[d];
    ++sum.count;
  }
  // The next round comes to it last: so what is local of the others stays for that round.
  hl::cold(&points_[block.first], block.count * sizeof(Point));
}

void Clusters::run(unsigned rounds) {
  std::vector<double> widths(apps::blocks_of(size_, kBlock));
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<Part> parts(settings_.threads, {std::vector<Sum>(centroids_.size()), 0});
    on_blocks([&](unsigned i, const Block& block) { assign(block, parts[i], widths[block.number]); });
    widths_.push_back(0);
    for (double width : widths) widths_.back() += width;
    move_centroids(parts);
  }
}

void Clusters::move_centroids(const std::vector<Part>& parts) {
  centroids_before_ = centroids_;
  moved_ = 0;
  for (const Part& part : parts) moved_ += part.moved;
  for (std::size_t cluster = 0; cluster < centroids_.size(); ++cluster) {
    Sum all;
    for (const Part& part : parts) {
      for (std::size_t d = 0; d < kDimensions; ++d) all.of[d] += part.sums[cluster].of[d];
      all.count += part.sums[cluster].count;
    }
    if (all.count == 0) continue;  // nobody's: it stays
    for (std::size_t d = 0; d < kDimensions; ++d)
      centroids_[cluster][d] = static_cast<float>(all.of[d] / static_cast<double>(all.count));
  }
}

void Clusters::verify() const {
  std::vector<std::array<double, kDimensions>> means(centroids_.size());
  std::vector<double> counts(centroids_.size());
  for (std::size_t i = 0; i < size_; ++i) {
    const Point& point = points_[i];
    const std::size_t label = labels_[i];
    if (label >= centroids_.size())
      throw std::runtime_error("--verify: point " + std::to_string(i) + " is in no cluster");
    for (std::size_t other = 0; other < centroids_.size(); ++other)
      if (distance(point, centroids_before_[other]) < distance(point, centroids_before_[label]))
        throw std::runtime_error("--verify: point " + std::to_string(i) + " is not in the nearest cluster");
    ++counts[label];
    for (std::size_t d = 0; d < kDimensions; ++d) means[label][d] += (point[d] - means[label][d]) / counts[label];
  }
  for (std::size_t cluster = 0; cluster < centroids_.size(); ++cluster)
    for (std::size_t d = 0; d < kDimensions && counts[cluster] != 0; ++d)
      if (std::abs(means[cluster][d] - centroids_[cluster][d]) > 1e-3)
        throw std::runtime_error("--verify: centroid " + std::to_string(cluster) + " is not the mean of its points");
  for (std::size_t round = 1; round < widths_.size(); ++round)
    if (widths_[round] > widths_[round - 1] * (1 + 1e-6))
      throw std::runtime_error("--verify: round " + std::to_string(round) + " made the clusters wider");
}

std::uint64_t Clusters::check() const {
  std::vector<std::uint64_t> parts(apps::blocks_of(size_, kBlock));
  on_blocks([&](unsigned, const Block& block) {
    std::uint64_t part = 0;
    for (std::size_t i = block.first; i < block.first + block.count; ++i) part = apps::mixed(part ^ labels_[i]);
    parts[block.number] = part;
  });
  std::uint64_t all = 0;
  for (std::uint64_t part : parts) all = apps::mixed(all ^ part);
  for (const Point& centroid : centroids_)
    for (float x : centroid) all = apps::mixed(all ^ std::bit_cast<std::uint32_t>(x));
  return all;
}

}  // namespace kmeans
