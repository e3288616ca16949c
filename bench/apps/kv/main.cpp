// kv: a server of memcached's protocol in this process, on fibers or on threads, and load for it over loopback
// (Eden 5.3.3: keys of 24 bytes, values of 512, Zipf(1.0), all of them there).
#include <stdexcept>
#include <thread>

#include "common/app.hpp"
#include "kv/load.hpp"
#include "kv/server.hpp"

namespace {

struct Shape {
  kv::LoadOptions load;
  bool blocking = false;
};

void fill(kv::Store& store, const kv::LoadOptions& options) {
  std::string value(options.value_bytes, '\0');
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    kv::load_value(key, options.seed, value);
    if (store.store(kv::Mode::set, kv::load_key(key), 7, 0, value) != kv::Stored::stored)
      throw std::runtime_error("cannot store key " + std::to_string(key));
  }
}

// Every key is there, and is what it was, whoever has read it or written it.
void verify(kv::Store& store, const kv::LoadOptions& options) {
  std::string wanted(options.value_bytes, '\0');
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    kv::load_value(key, options.seed, wanted);
    bool same = false;
    bool found = store.get(kv::load_key(key), [&](const kv::Item& item) { same = item.value() == wanted; });
    if (!found || !same)
      throw std::runtime_error("--verify: key " + std::to_string(key) + (found ? " has another value" : " is gone"));
  }
}

apps::Outcome work(apps::App& app, const apps::Settings& settings, Shape shape) {
  // Beside an item: its place, when it was used, and its share of the buckets.
  constexpr std::size_t kBesideBytes = 16 + 4 + 6;
  kv::LoadOptions& load = shape.load;
  std::size_t item_bytes = kv::Item::bytes_for(kv::kLoadKeyBytes, load.value_bytes);
  load.keys = settings.size_bytes / (item_bytes + kBesideBytes);
  if (load.keys == 0) throw std::invalid_argument("--size holds not one item of so many --value-bytes");
  if (load.requests == 0) load.requests = load.keys;
  load.connections = settings.fibers != 0 ? settings.fibers : settings.threads;
  load.threads = settings.threads;
  load.seed = settings.seed;

  // Shards are not equally full: twice the room, so that none has to evict.
  kv::Store store(2 * load.keys * item_bytes + (std::size_t{4} << 20));
  fill(store, load);
  kv::Server server(store, {.threads = settings.threads, .fibers = settings.fibers != 0, .blocking = shape.blocking});
  load.port = server.port();
  apps::Outcome outcome{.footprint_bytes = load.keys * (item_bytes + kBesideBytes), .operations = load.requests};
  std::jthread serving([&] { server.run(); });
  try {
    app.measure([&] { outcome.check = kv::load(load); });
  } catch (...) {
    server.stop();
    throw;
  }
  server.stop();
  serving.join();
  if (settings.verify) verify(store, load);
  kv::Counts counts = store.counts();
  outcome.figures = {{"keys", load.keys},
                     {"value_bytes", load.value_bytes},
                     {"connections", load.connections},
                     {"depth", load.depth},
                     {"set_percent", load.set_percent},
                     {"blocking_hints", shape.blocking},
                     {"evictions", counts.evictions}};
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("kv", "Serves memcached's protocol to load of its own");
  app.offer_fibers();
  Shape shape;
  kv::LoadOptions& load = shape.load;
  app.options().number("--value-bytes", load.value_bytes, "of an item", 1, kv::kValueBytesMax - kv::kLoadKeyBytes);
  kv::offer_load(app.options(), load);
  app.options().flag("--blocking", shape.blocking,
                     "with --fibers: hints block the thread, instead of parking the fiber");
  return app.run(argc, argv, [&](const apps::Settings& settings) { return work(app, settings, shape); });
}
