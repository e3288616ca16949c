// kmeans: clusters of points. clusters.hpp says how.
#include "common/app.hpp"
#include "kmeans/clusters.hpp"

int main(int argc, char** argv) {
  apps::App app("kmeans", "Finds clusters of points");
  unsigned clusters = 16, rounds = 10;
  app.options().number("--clusters", clusters, "that are looked for", 2, 256);
  app.options().number("--rounds", rounds, "of assigning the points and moving the centroids", 1, 1000);
  return app.run(argc, argv, [&](const apps::Settings& settings) {
    kmeans::Clusters points(settings, clusters);
    app.measure([&] { points.run(rounds); });
    if (settings.verify) points.verify();
    return apps::Outcome{
        .footprint_bytes = points.bytes(),
        .operations = std::uint64_t{points.size()} * rounds,
        .check = points.check(),
        .figures = {{"points", points.size()},
                    {"clusters", clusters},
                    {"rounds", rounds},
                    {"moved_in_last_round", points.moved_last()},
                    {"width_per_point", points.widths().back() / static_cast<double>(points.size())}}};
  });
}
