// Lloyd's algorithm over many points of a few dimensions. (TrackFM 4.2: k-means, 30 million points in 1 GB)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/blocks.hpp"
#include "common/settings.hpp"

namespace kmeans {

inline constexpr std::size_t kDimensions = 8;

// A whole number of 2^-10, and small: so sums of them in double are exact, and do not depend on their order.
using Point = std::array<float, kDimensions>;
using Label = std::uint8_t;  // a cluster

class Clusters {
 public:
  // Points around as many random centres as there are clusters (2 to 256). Both by `settings.threads`.
  Clusters(const apps::Settings& settings, unsigned clusters);

  // Moves each centroid to the middle of the points that are nearest to it; so many times.
  void run(unsigned rounds);

  // Throws std::runtime_error unless each point has the label of the nearest of the centroids before the last round,
  // each centroid is the mean of its points, and no round made the clusters wider.
  void verify() const;
  std::uint64_t check() const;

  std::size_t bytes() const { return size_ * (sizeof(Point) + sizeof(Label)); }
  std::size_t size() const { return size_; }
  // Sums of squared distances to the nearest centroid, before each round's move.
  const std::vector<double>& widths() const { return widths_; }
  std::uint64_t moved_last() const { return moved_; }  // points that changed their cluster in the last round

 private:
  struct Sum {
    std::array<double, kDimensions> of{};
    std::uint64_t count = 0;
  };
  struct alignas(64) Part {  // of one thread, on cache lines of its own
    std::vector<Sum> sums;
    std::uint64_t moved = 0;
  };
  static constexpr std::size_t kBlock = apps::kBlockBytes / sizeof(Point);

  template <typename Body>
  void on_blocks(Body&& body) const;
  void assign(const apps::Block& block, Part& part, double& width);
  void move_centroids(const std::vector<Part>& parts);

  const apps::Settings& settings_;
  std::size_t size_;
  std::unique_ptr<Point[]> points_;
  std::unique_ptr<Label[]> labels_;
  std::vector<Point> centroids_, centroids_before_;
  std::vector<double> widths_;
  std::uint64_t moved_ = 0;
};

}  // namespace kmeans
