// memcached: the real one, with our hints inserted (bench/apps/memcached/build) or as Debian has it, under the load
// of kv (Eden 5.3.3). It runs as a child of this process, and under `hinterland run` is far as this one is.
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "common/app.hpp"
#include "kv/load.hpp"
#include "memcached/server.hpp"

namespace {

// Beside us, when it was built.
std::string program_beside_us() {
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return self.parent_path() / (apps::kHinted ? "memcached-hinted" : "memcached-plain");
}

apps::Outcome work(apps::App& app, const apps::Settings& settings, kv::LoadOptions load, std::string program) {
  // What memcached has beside key and value, with its `cas`, and its bucket; and its classes of sizes waste a part.
  constexpr double kBesideBytes = 56 + 8, kWaste = 1.12;
  auto item_bytes =
      static_cast<std::size_t>((kBesideBytes + kv::kLoadKeyBytes + static_cast<double>(load.value_bytes)) * kWaste);
  if (program.empty()) program = program_beside_us();
  if (access(program.c_str(), X_OK) != 0)
    throw std::invalid_argument("there is no program " + program +
                                ": build it (bench/apps/memcached/build), or name another with --program");
  load.keys = settings.size_bytes / item_bytes;
  if (load.keys == 0) throw std::invalid_argument("--size holds not one item of so many --value-bytes");
  if (load.requests == 0) load.requests = load.keys;
  if (load.connections == 0) load.connections = 16 * settings.threads;
  load.threads = settings.threads;
  load.seed = settings.seed;

  memcached::Server server({.program = program,
                            .threads = settings.threads,
                            .memory_bytes = 2 * settings.size_bytes + (std::size_t{64} << 20),
                            .keys = load.keys});
  load.port = server.port();
  apps::App::look_at(server.pid());
  kv::fill(load);
  apps::Outcome outcome{.footprint_bytes = load.keys * item_bytes, .operations = load.requests};
  app.measure([&] { outcome.check = kv::load(load); });
  server.end();
  outcome.figures = {{"keys", load.keys},   {"value_bytes", load.value_bytes}, {"connections", load.connections},
                     {"depth", load.depth}, {"set_percent", load.set_percent}, {"program", program}};
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("memcached", "Runs memcached under load");
  kv::LoadOptions load;
  load.connections = 0;
  std::string program;
  app.options().text("--program", program,
                     "another memcached; without, the one that bench/apps/memcached/build made");
  app.options().number("--value-bytes", load.value_bytes, "of an item", 1, 1'000'000);
  kv::offer_load(app.options(), load);
  app.options().number("--connections", load.connections, "to memcached; 0: 16 for each thread", 0, 1000);
  return app.run(argc, argv, [&](const apps::Settings& settings) { return work(app, settings, load, program); });
}
