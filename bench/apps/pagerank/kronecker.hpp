// Edges of a Kronecker graph, as GAP and Graph500 make them: in each of `scale` levels an edge falls into one of the
// four quadrants of the adjacency matrix, and then the vertices are renamed at random. The same edges can be drawn
// again, so that they need not be kept. (Beamer, Asanovic, Patterson: "The GAP Benchmark Suite", 2015)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/random.hpp"

namespace pagerank {

using Vertex = std::uint32_t;

struct Edge {
  Vertex from, to;
};

class Kronecker {
 public:
  // 2^scale vertices; scale: 1 to 31.
  Kronecker(unsigned scale, std::uint64_t seed) : scale_(scale), seed_(apps::mixed(seed)) {
    // Each quadrant of a quadrant has its share of all draws.
    double end = 0;
    std::size_t filled = 0;
    for (unsigned upper = 0; upper < 4; ++upper)
      for (unsigned lower = 0; lower < 4; ++lower) {
        end += kQuadrants[upper] * kQuadrants[lower] * static_cast<double>(quadrants_.size());
        auto both = static_cast<std::uint8_t>((upper & 1) << 1 | (lower & 1) | (upper & 2) << 2 | (lower & 2) << 1);
        for (; filled < quadrants_.size() && static_cast<double>(filled) < end - 0.5; ++filled)
          quadrants_[filled] = both;
      }
  }

  Edge draw(apps::Random& random) const {
    Vertex from = 0, to = 0;
    std::uint64_t bits = 0;
    unsigned levels = 0;
    for (; levels < scale_; levels += 2, bits >>= 16) {
      if (levels % 8 == 0) bits = random.next();  // 16 of them for two levels
      const std::uint8_t quadrant = quadrants_[bits & 0xFFFF];
      from = from << 2 | (quadrant >> 2);
      to = to << 2 | (quadrant & 3);
    }
    return {renamed(from >> (levels - scale_)), renamed(to >> (levels - scale_))};
  }

 private:
  // GAP's A, B, C and D. Bit 1 of the number is the half that `from` is in, bit 0 that of `to`.
  static constexpr double kQuadrants[] = {0.57, 0.19, 0.19, 0.05};

  // A permutation of the vertices: each step can be undone. (Multiplying by an odd number, and mixing the upper half
  // of the bits into the lower.)
  Vertex renamed(Vertex vertex) const {
    const Vertex mask = static_cast<Vertex>((std::uint64_t{1} << scale_) - 1);
    const unsigned half = (scale_ + 1) / 2;
    for (unsigned step = 0; step < 2; ++step) {
      vertex = (vertex * (static_cast<Vertex>(seed_ >> (16 * step)) | 1u) + 0x9E3779B9u) & mask;
      vertex ^= vertex >> half;
    }
    return vertex;
  }

  unsigned scale_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> quadrants_ = std::vector<std::uint8_t>(65536);  // two levels of `from`, two of `to`
};

}  // namespace pagerank
