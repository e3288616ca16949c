// pagerank: PageRank over a Kronecker graph in compressed sparse rows.
#include "common/app.hpp"
#include "pagerank/graph.hpp"
#include "pagerank/ranks.hpp"

int main(int argc, char** argv) {
  apps::App app("pagerank", "Ranks the vertices of a Kronecker graph");
  unsigned rounds = 10, scale = 0;
  std::uint64_t degree = pagerank::Graph::kDegree;
  app.options().number("--rounds", rounds, "of PageRank", 1, 1000);
  app.options().number("--scale", scale, "2^SCALE vertices, whatever --size says", 4, pagerank::Graph::kScaleMax);
  app.options().number("--degree", degree, "edges that are drawn for each vertex, with --scale", 1, 1024);
  app.options().needs("--degree", "--scale");
  return app.run(argc, argv, [&](const apps::Settings& settings) {
    pagerank::Graph::Shape shape =
        scale == 0 ? pagerank::Graph::shape_of(settings.size_bytes) : pagerank::Graph::Shape{scale, degree};
    pagerank::Graph graph(shape, settings.seed, settings.threads);
    pagerank::Ranks ranks(graph, settings.threads);
    app.measure([&] { ranks.run(rounds); });
    if (settings.verify) {
      graph.verify();
      ranks.verify();
    }
    return apps::Outcome{.footprint_bytes = graph.bytes() + ranks.bytes(),
                         .operations = graph.edges() * rounds,
                         .check = ranks.check(),
                         .figures = {{"vertices", graph.vertices()},
                                     {"edges", graph.edges()},
                                     {"degree_drawn", shape.degree},
                                     {"rounds", rounds},
                                     {"last_change", ranks.last_change()}}};
  });
}
