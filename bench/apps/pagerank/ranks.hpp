// PageRank: each vertex pulls what its neighbours pass on. (GAP's pr; ExtMem 4.4)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pagerank/graph.hpp"

namespace pagerank {

class Ranks {
 public:
  Ranks(const Graph& graph, unsigned threads);

  void run(unsigned rounds);

  // Throws std::runtime_error unless ranks that are pushed along the edges, one edge after the other, come to the
  // same.
  void verify() const;
  std::uint64_t check() const;

  std::size_t bytes() const { return std::size_t{graph_.vertices()} * 2 * sizeof(float); }
  double last_change() const { return change_; }  // of all ranks together, in the last round

 private:
  template <typename Body>
  void on_blocks(Body&& body);
  void pass_on(Vertex first, Vertex end);
  double pull(Vertex first, Vertex end);

  const Graph& graph_;
  unsigned threads_;
  unsigned rounds_ = 0;
  std::unique_ptr<float[]> ranks_;
  std::unique_ptr<float[]> passed_;  // what each vertex gives each of its neighbours
  double change_ = 0;
};

}  // namespace pagerank
