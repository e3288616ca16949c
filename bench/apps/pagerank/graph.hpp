// An undirected graph in compressed sparse rows: all neighbours of a vertex in one piece, sorted, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pagerank/kronecker.hpp"

namespace pagerank {

class Graph {
 public:
  struct Shape {
    unsigned scale;        // 2^scale vertices; 1 to kScaleMax
    std::uint64_t degree;  // edges that are drawn, for each vertex; GAP has 16
  };
  static constexpr unsigned kScaleMax = 28;
  static constexpr std::uint64_t kDegree = 16;  // GAP's

  // About how much memory a graph and its ranks take, before edges that were drawn twice are taken out.
  static std::size_t bytes(const Shape& shape);
  // The graph of the most vertices that fits, of at least GAP's degree.
  static Shape shape_of(std::size_t bytes);

  // By so many threads. On the way it takes no more memory than for the edges that are drawn, in which it never goes
  // all over the place.
  Graph(const Shape& shape, std::uint64_t seed, unsigned threads);

  Vertex vertices() const { return vertices_; }
  std::uint64_t edges() const { return offsets_.back(); }  // each counted from both its ends
  std::uint64_t degree(Vertex vertex) const { return offsets_[vertex + 1] - offsets_[vertex]; }
  const Vertex* neighbours(Vertex vertex) const { return neighbours_.get() + offsets_[vertex]; }
  std::span<const std::uint64_t> offsets() const { return offsets_; }
  std::size_t bytes() const { return offsets_.size() * sizeof offsets_[0] + edges() * sizeof(Vertex); }

  // Throws std::runtime_error unless the rows are sorted, without doubles and loops, and each edge is in both of
  // them.
  void verify() const;

 private:
  struct Build;
  Vertex vertices_;
  std::vector<std::uint64_t> offsets_;  // of each vertex's neighbours; and the end
  std::unique_ptr<Vertex[]> neighbours_;
};

}  // namespace pagerank
