#include "pagerank/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "common/blocks.hpp"
#include "hinterland/hint.hpp"

namespace pagerank {
namespace {

constexpr double kDamping = 0.85;
// Vertices that a thread takes at a time. Their rows are some 256 KiB, with a few that are much longer.
constexpr Vertex kBlock = 2048;

}  // namespace

Ranks::Ranks(const Graph& graph, unsigned threads)
    : graph_(graph),
      threads_(threads),
      ranks_(std::make_unique_for_overwrite<float[]>(graph.vertices())),
      passed_(std::make_unique_for_overwrite<float[]>(graph.vertices())) {
  std::fill_n(ranks_.get(), graph.vertices(), static_cast<float>(1.0 / graph.vertices()));
  std::fill_n(passed_.get(), graph.vertices(), 0.0f);
}

// body(block number, first, end): whoever is free takes the next, because rows are of very different lengths.
template <typename Body>
void Ranks::on_blocks(Body&& body) {
  std::atomic<std::size_t> next{0};
  const std::size_t blocks = apps::blocks_of(graph_.vertices(), kBlock);
  apps::on_threads(threads_, [&](unsigned) {
    for (std::size_t number; (number = next.fetch_add(1)) < blocks;) {
      const apps::Block block = apps::block_at(number, graph_.vertices(), kBlock);
      body(number, static_cast<Vertex>(block.first), static_cast<Vertex>(block.first + block.count));
    }
  });
}

void Ranks::pass_on(Vertex first, Vertex end) {
  const std::uint64_t* offsets = graph_.offsets().data();
  hl::hint(&passed_[first], {.mut = true, .size = (end - first) * sizeof(float)});
  hl::hint(&ranks_[first], {.size = (end - first) * sizeof(float)});
  hl::hint(&offsets[first], {.size = (end - first + 1) * sizeof *offsets});
  for (Vertex vertex = first; vertex < end; ++vertex) {
    const std::uint64_t degree = graph_.degree(vertex);
    passed_[vertex] = degree == 0 ? 0 : ranks_[vertex] / static_cast<float>(degree);
  }
}

// By how much the ranks of these vertices changed.
double Ranks::pull(Vertex first, Vertex end) {
  const float base = static_cast<float>((1 - kDamping) / graph_.vertices());
  const std::uint64_t* offsets = graph_.offsets().data();
  hl::hint(&offsets[first], {.size = (end - first + 1) * sizeof *offsets});
  const Vertex* row = graph_.neighbours(first);
  const std::size_t row_bytes = (offsets[end] - offsets[first]) * sizeof(Vertex);
  hl::hint(row, {.size = row_bytes});
  hl::hint(&ranks_[first], {.mut = true, .size = (end - first) * sizeof(float)});
  double change = 0;
  for (Vertex vertex = first; vertex < end; ++vertex) {
    float sum = 0;
    for (const Vertex* row_end = row + graph_.degree(vertex); row < row_end; ++row) sum += passed_[*row];
    const float rank = base + static_cast<float>(kDamping) * sum;
    change += std::abs(rank - ranks_[vertex]);
    ranks_[vertex] = rank;
  }
  // Rows are read once a round, `passed_` all the time: that is what must stay.
  hl::cold(graph_.neighbours(first), row_bytes);
  return change;
}

void Ranks::run(unsigned rounds) {
  std::vector<double> changes(apps::blocks_of(graph_.vertices(), kBlock));
  for (rounds_ = 0; rounds_ < rounds; ++rounds_) {
    on_blocks([&](std::size_t, Vertex first, Vertex end) { pass_on(first, end); });
    on_blocks([&](std::size_t number, Vertex first, Vertex end) { changes[number] = pull(first, end); });
    change_ = 0;
    for (double change : changes) change_ += change;
  }
}

void Ranks::verify() const {
  const double base = (1 - kDamping) / graph_.vertices();
  std::vector<double> now(graph_.vertices(), 1.0 / graph_.vertices()), next;
  for (unsigned round = 0; round < rounds_; ++round) {
    next.assign(graph_.vertices(), base);
    for (Vertex vertex = 0; vertex < graph_.vertices(); ++vertex)
      for (std::uint64_t i = 0; i < graph_.degree(vertex); ++i)
        next[graph_.neighbours(vertex)[i]] += kDamping * now[vertex] / static_cast<double>(graph_.degree(vertex));
    now.swap(next);
  }
  // Sums of many floats: the most neighbours that a vertex has, times the precision.
  for (Vertex vertex = 0; vertex < graph_.vertices(); ++vertex)
    if (!(std::abs(now[vertex] - ranks_[vertex]) <= now[vertex] * 1e-3))
      throw std::runtime_error("--verify: the rank of vertex " + std::to_string(vertex) + " is wrong");
}

std::uint64_t Ranks::check() const {
  std::uint64_t all = graph_.edges();
  for (Vertex vertex = 0; vertex < graph_.vertices(); ++vertex)
    all = apps::mixed(all ^ std::bit_cast<std::uint32_t>(ranks_[vertex]));
  return all;
}

}  // namespace pagerank
