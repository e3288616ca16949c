// aifm_waits: what a miss of a far object costs where nobody blocks, in time and in bytes on the wire: random reads
// of objects of 64 bytes by a thread, by fibers, or by coroutines in an event loop; with --map, look-ups in a far
// map. Run it under `hinterland run`; bench/aifm/waits does, and compares.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "command/options.hpp"
#include "hinterland/fiber.hpp"
#include "hinterland/object.hpp"
#include "hinterland/object_map.hpp"
#include "hinterland/object_pin.hpp"

namespace {

struct Item {
  std::uint64_t words[8];
};

struct Work {
  std::string who;
  std::size_t size_bytes = std::size_t{64} << 20;
  std::uint64_t accesses = 50'000;
  std::uint64_t waiters = 32;
  bool map = false;
};

using Map = hl::far::unordered_map<std::uint64_t, Item>;
using Items = std::vector<hl::far::ptr<Item>>;

// What one of them does: a share of the accesses.
struct Reader {
  const Items& items;
  std::uint64_t random;
  std::uint64_t accesses;
  std::uint64_t misses = 0, wrong = 0;

  std::size_t next() {
    const std::size_t at = random_place(random, items.size());
    misses += items[at].far_word()->load(std::memory_order_relaxed) & hl::far::detail::kAway;
    return at;
  }
  static std::size_t random_place(std::uint64_t& random, std::size_t count) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % count;
  }
  void look(std::size_t at, const Item& there) { wrong += there.words[0] != at; }
};

// Of what TCP carries in both directions, over all connections of this process: those of the far device.
std::uint64_t bytes_on_the_wire() {
  std::uint64_t bytes = 0;
  for (int descriptor = 3; descriptor < 4096; ++descriptor) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    bytes += info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_bytes_received;
  }
  return bytes;
}

void read_blocking(Reader& reader) {
  for (std::uint64_t i = 0; i < reader.accesses; ++i) {
    const std::size_t at = reader.next();
    hl::far::scope held;
    reader.look(at, *reader.items[at].deref(held));
  }
}

// Of a map nobody sees from outside what is far: each look-up counts as a miss.
void look_up(const Map& map, Reader& reader) {
  const std::size_t count = map.size();
  for (std::uint64_t i = 0; i < reader.accesses; ++i) {
    const std::size_t at = Reader::random_place(reader.random, count);
    reader.wrong += !map.visit(at, [&](const Item& there) { reader.look(at, there); });
    ++reader.misses;
  }
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Task read_awaiting(Reader& reader, std::uint64_t& running) {
  for (std::uint64_t i = 0; i < reader.accesses; ++i) {
    const std::size_t at = reader.next();
    const auto there = co_await reader.items[at].pin();
    reader.look(at, *there);
  }
  --running;
}

void read_all(const Work& work, const Map& map, std::vector<Reader>& readers) {
  auto read = [&](Reader& reader) { work.map ? look_up(map, reader) : read_blocking(reader); };
  if (work.who == "thread") return read(readers.front());
  if (work.who == "coroutines") {
    std::uint64_t running = readers.size();
    for (Reader& reader : readers) read_awaiting(reader, running);
    while (running != 0) hl::far::arrivals::of_this_thread().wait(std::chrono::seconds(1));
    return;
  }
  hl::fibers::run({.workers = 1}, [&] {
    std::vector<hl::fibers::fiber> fibers;
    for (Reader& reader : readers) fibers.emplace_back([&reader, &read] { read(reader); });
    for (auto& each : fibers) each.join();
  });
}

}  // namespace

int main(int argc, char** argv) {
  Work work;
  bench::Options options("aifm_waits", "Measures misses of far objects, and prints as JSON the ns of one");
  options.choice("who", work.who, {"thread", "fibers", "coroutines"}, "who reads; all of them in one thread");
  options.number("--waiters", work.waiters, "fibers or coroutines", 1, 1 << 16);
  options.flag("--map", work.map, "look-ups in a far map; not by coroutines");
  options.size("--size", work.size_bytes, "of all objects together", "64M");
  options.number("--accesses", work.accesses, "of all together", 1, UINT64_C(1) << 40);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (work.map && work.who == "coroutines") {
    std::fputs("aifm_waits: coroutines cannot await look-ups in a map\n", stderr);
    return 2;
  }
  const std::size_t count = work.size_bytes / sizeof(Item);
  Items items;
  Map map;
  items.reserve(work.map ? 0 : count);
  for (std::size_t i = 0; i < count; ++i) {
    if (work.map)
      map.insert(i, Item{{i}});
    else
      items.push_back(hl::far::make<Item>(Item{{i}}));
  }
  const std::uint64_t waiters = work.who == "thread" ? 1 : work.waiters;
  std::vector<Reader> readers;
  for (std::uint64_t i = 0; i < waiters; ++i) readers.push_back({items, i + 1, work.accesses / waiters});
  // All of them have a far copy then, and what leaves from now on is not written.
  map.for_each([](std::uint64_t, const Item&) {});
  for (std::size_t i = 0; i < items.size(); ++i) {
    hl::far::scope held;
    if (items[i].deref(held)->words[0] != i) return 1;
  }
  const std::uint64_t wire = bytes_on_the_wire();
  const std::uint64_t start = hinterland::now_ns();
  read_all(work, map, readers);
  const std::uint64_t ns = hinterland::now_ns() - start;
  const std::uint64_t wire_bytes = bytes_on_the_wire() - wire;
  std::uint64_t misses = 0, wrong = 0;
  for (const Reader& reader : readers) misses += reader.misses, wrong += reader.wrong;
  if (wrong != 0 || misses == 0) {
    std::fprintf(stderr, "aifm_waits: %llu objects were wrong, %llu missed\n", static_cast<unsigned long long>(wrong),
                 static_cast<unsigned long long>(misses));
    return 1;
  }
  hinterland::Json document{
      {"schema_version", 1},
      {"program", "aifm_waits"},
      {"who", work.who},
      {"waiters", waiters},
      {"map", work.map},
      {"misses", misses},
      {"wire_bytes_per_byte", static_cast<double>(wire_bytes) / static_cast<double>(misses * sizeof(Item))},
      {"unit", "ns"},
      {"value", static_cast<double>(ns) / static_cast<double>(misses)}};
  std::puts(document.dump(1).c_str());
  return 0;
}
