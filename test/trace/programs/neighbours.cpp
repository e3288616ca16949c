// A graph in rows: each is walked once a round, and chooses values out of a few pages that are used all the time. Of
// 4096 vertices the values are on four pages, whose faults are far fewer than one in a hundred.
//     neighbours VERTICES ROUNDS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Graph {
  std::unique_ptr<std::uint32_t[]> neighbours;
  std::vector<std::uint16_t> degrees;
  std::unique_ptr<float[]> values;

  double round() const {
    double all = 0;
    const std::uint32_t* row = neighbours.get();
    for (std::size_t vertex = 0; vertex < degrees.size(); ++vertex) {
      float sum = 0;
      for (const std::uint32_t* row_end = row + degrees[vertex]; row < row_end; ++row) sum += values[*row];
      all += static_cast<double>(sum) / static_cast<double>(vertex + 1);
    }
    return all;
  }
};

static std::uint64_t next_random() {
  static std::uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto vertices = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  unsigned long rounds = std::strtoul(argv[2], nullptr, 10);
  Graph graph;
  std::size_t edges = 0;
  graph.values = std::make_unique<float[]>(vertices);
  for (std::uint32_t i = 0; i < vertices; ++i) {
    graph.values[i] = static_cast<float>(i);
    graph.degrees.push_back(static_cast<std::uint16_t>(next_random() % 1024 + 1));
    edges += graph.degrees.back();
  }
  graph.neighbours = std::make_unique<std::uint32_t[]>(edges);
  for (std::size_t i = 0; i < edges; ++i) graph.neighbours[i] = static_cast<std::uint32_t>(next_random() % vertices);
  double all = 0;
  for (unsigned long round = 0; round < rounds; ++round) all += graph.round();
  std::printf("%.6f\n", all);
  return 0;
}
