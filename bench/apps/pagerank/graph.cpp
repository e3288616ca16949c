#include "pagerank/graph.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "common/blocks.hpp"

namespace pagerank {
namespace {

// What ranks.hpp keeps for each vertex, and the offset of its row.
constexpr std::size_t kBytesPerVertex = sizeof(std::uint64_t) + 2 * sizeof(float);
constexpr std::size_t kEdgesDrawn = 4096;  // out of one sequence of random numbers

}  // namespace

std::size_t Graph::bytes(const Shape& shape) {
  return (kBytesPerVertex + 2 * shape.degree * sizeof(Vertex)) << shape.scale;
}

Graph::Shape Graph::shape_of(std::size_t size) {
  Shape shape{1, kDegree};
  while (shape.scale < kScaleMax && bytes({shape.scale + 1, kDegree}) <= size) ++shape.scale;
  while (bytes({shape.scale, shape.degree + 1}) <= size) ++shape.degree;
  return shape;
}

// Edges are put into buckets, each of the rows of some vertices in a row. A bucket takes the place that its rows will
// have (and what they lose as doubles), because an edge fits into the room of one neighbour: beside that, there are
// only the lower bits of the vertex whose neighbour it is, and the bucket says the upper ones.
struct Graph::Build {
  Graph& graph;
  const Shape shape;
  const std::uint64_t seed;
  const unsigned threads;
  const Kronecker kronecker{shape.scale, seed};
  // A bucket is small, too, because putting its entries in order goes all over it.
  const unsigned low_bits = std::min({shape.scale, 32 - shape.scale, 10u});
  const Vertex rows = Vertex{1} << low_bits;  // of a bucket
  const std::size_t buckets = std::size_t{1} << (shape.scale - low_bits);
  std::vector<std::uint64_t> ends =
      std::vector<std::uint64_t>(buckets + 1);  // of each bucket, from its number + 1 on

  Vertex packed(Vertex vertex, Vertex neighbour) const { return (vertex & (rows - 1)) << shape.scale | neighbour; }
  Vertex row_of(Vertex entry) const { return static_cast<Vertex>(std::uint64_t{entry} >> shape.scale); }
  Vertex neighbour_of(Vertex entry) const { return entry & (graph.vertices_ - 1); }

  // visit(vertex, neighbour) for all edges, from both ends; not for loops.
  template <typename Visit>
  void draw(Visit&& visit) const {
    apps::on_threads(threads, [&](unsigned i) {
      apps::for_blocks(shape.degree << shape.scale, kEdgesDrawn, i, threads, [&](const apps::Block& block) {
        apps::Random random(seed, block.number);
        for (std::size_t n = 0; n < block.count; ++n) {
          const Edge edge = kronecker.draw(random);
          if (edge.from == edge.to) continue;
          visit(edge.from, edge.to);
          visit(edge.to, edge.from);
        }
      });
    });
  }

  // relaxed: what is counted is looked at when the threads have ended
  std::uint64_t count_up(std::uint64_t& number) const {
    return std::atomic_ref(number).fetch_add(1, std::memory_order_relaxed);
  }

  void fill_buckets() {
    draw([&](Vertex vertex, Vertex) { count_up(ends[(vertex >> low_bits) + 1]); });
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) ends[bucket + 1] += ends[bucket];
    graph.neighbours_ = std::make_unique_for_overwrite<Vertex[]>(ends.back());
    std::vector<std::uint64_t> next(ends.begin(), ends.end() - 1);
    draw([&](Vertex vertex, Vertex neighbour) {
      graph.neighbours_[count_up(next[vertex >> low_bits])] = packed(vertex, neighbour);
    });
  }

  // The entries become neighbours, at the beginning of the bucket, and the rows' lengths are left in the offsets.
  void make_rows(std::size_t bucket, std::vector<Vertex>& entries) {
    Vertex* begin = &graph.neighbours_[ends[bucket]];
    std::uint64_t* lengths = &graph.offsets_[(bucket << low_bits) + 1];
    entries.assign(begin, begin + (ends[bucket + 1] - ends[bucket]));
    std::vector<std::uint64_t> next(rows + 1);
    for (Vertex entry : entries) ++next[row_of(entry) + 1];
    for (Vertex row = 0; row < rows; ++row) next[row + 1] += next[row];
    for (Vertex entry : entries) begin[next[row_of(entry)]++] = neighbour_of(entry);
    Vertex* filled = begin;
    for (Vertex row = 0, *first = begin; row < rows; ++row) {
      Vertex* end = begin + next[row];
      std::sort(first, end);
      const Vertex* kept = std::unique(first, end);
      lengths[row] = static_cast<std::uint64_t>(kept - first);
      for (const Vertex* entry = first; entry != kept; ++entry) *filled++ = *entry;
      first = end;
    }
  }

  void close_gaps() {
    std::uint64_t filled = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      std::uint64_t* lengths = &graph.offsets_[(bucket << low_bits) + 1];
      const std::uint64_t before = filled;
      for (Vertex row = 0; row < rows; ++row) lengths[row] = filled += lengths[row];
      std::copy_n(&graph.neighbours_[ends[bucket]], filled - before, &graph.neighbours_[before]);
    }
  }

  void all() {
    fill_buckets();
    apps::on_threads(threads, [&](unsigned i) {
      std::vector<Vertex> entries;
      const apps::Share mine = apps::share(buckets, i, threads);
      for (std::size_t bucket = mine.first; bucket < mine.last; ++bucket) make_rows(bucket, entries);
    });
    close_gaps();
  }
};

Graph::Graph(const Shape& shape, std::uint64_t seed, unsigned threads)
    : vertices_(Vertex{1} << shape.scale), offsets_(std::size_t{vertices_} + 1) {
  Build{*this, shape, seed, threads}.all();
}

void Graph::verify() const {
  // Both sums are over the same edges if each edge is in the rows of both its ends.
  std::uint64_t there = 0, back = 0;
  for (Vertex vertex = 0; vertex < vertices_; ++vertex) {
    const Vertex* row = neighbours(vertex);
    for (std::uint64_t i = 0; i < degree(vertex); ++i) {
      if (row[i] >= vertices_ || row[i] == vertex || (i > 0 && row[i] <= row[i - 1]))
        throw std::runtime_error("--verify: the row of vertex " + std::to_string(vertex) + " is wrong");
      there += apps::mixed(std::uint64_t{vertex} << 32 | row[i]);
      back += apps::mixed(std::uint64_t{row[i]} << 32 | vertex);
    }
  }
  if (there != back) throw std::runtime_error("--verify: an edge is in the row of one of its ends only");
}

}  // namespace pagerank
