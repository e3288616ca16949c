// webservice: answers requests that look 32 keys up in a hash table, and with what they find one large object, which
// is compressed and encrypted (AIFM 8.1.1, Eden 5.3.2).
#include <algorithm>
#include <cstring>
#include <hinterland/hint.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/app.hpp"
#include "common/fiber_team.hpp"
#include "common/zipf.hpp"
#include "webservice/objects.hpp"
#include "webservice/sealer.hpp"
#include "webservice/table.hpp"

namespace {

using namespace webservice;

constexpr std::size_t kLookups = 32;
constexpr double kTableShare = 0.38;  // of the data: 10 of 26 GB in the papers
// Unless said otherwise: enough that what stays local, and not what was there when it began, decides how long it
// takes.
constexpr std::size_t kBytesARequest = 4096;

struct Shape {
  std::size_t value_bytes = 4;
  double skew = 0.8;
  std::uint64_t requests = 0;  // 0: one for 4 KiB of --size
  bool flat = false;           // objects are no different from entries
};

// As a client would send it: the number of the object is not in it, but follows from what the lookups find.
struct Request {
  std::uint32_t keys[kLookups];
  std::uint32_t offset;
};

std::vector<Request> draw_requests(std::size_t count, std::size_t entries, std::size_t objects, double skew,
                                   std::uint64_t seed) {
  apps::Zipf key_ranks(entries, skew), object_ranks(objects, skew);
  apps::Permutation key_of(entries, seed), object_of(objects, seed + 1);
  apps::Random random(seed, 2);
  std::vector<Request> requests(count);
  for (Request& request : requests) {
    std::uint32_t sum = 0;
    for (std::uint32_t& key : request.keys) {
      key = static_cast<std::uint32_t>(key_of(key_ranks.draw(random)));
      sum += Table::word_of(key);
    }
    request.offset = static_cast<std::uint32_t>(object_of(object_ranks.draw(random))) - sum;
  }
  return requests;
}

struct Service {
  Table table;
  Objects objects;
  std::vector<Request> requests;
  std::size_t value_bytes;
  bool flat;

  // The number of a request's object.
  std::size_t look_up(const Request& request, std::byte* copy) const {
    std::uint32_t sum = request.offset;
    for (std::uint32_t key : request.keys) {
      std::uint32_t word = 0;
      if (!table.find(key, word, copy))
        throw std::runtime_error("key " + std::to_string(key) + " is not in the table");
      sum += word;
    }
    if (sum >= objects.count()) throw std::runtime_error("the lookups have found wrong values");
    return sum;
  }

  // A sum over the answers: the last block of an answer depends on all of it (CBC).
  std::uint64_t answer(apps::Share part) const {
    Sealer sealer(kObjectBytes);
    std::vector<std::byte> copy(value_bytes);
    std::uint64_t check = 0;
    for (std::size_t i = part.first; i < part.last; ++i) {
      hl::seq_read(&requests[i]);
      auto sealed = sealer.seal(objects.get(look_up(requests[i], copy.data()), !flat), i);
      std::uint64_t end = 0;
      std::memcpy(&end, sealed.data() + sealed.size() - sizeof end, sizeof end);
      check += apps::mixed(end ^ i);
    }
    return check;
  }

  // Some answers, undone, and held against objects that are made anew.
  void verify(std::uint64_t seed) const {
    Sealer sealer(kObjectBytes);
    std::vector<std::byte> copy(value_bytes), wanted(kObjectBytes);
    for (std::size_t i = 0; i < std::min<std::size_t>(requests.size(), 1000); ++i) {
      std::uint32_t number = requests[i].offset;
      for (std::uint32_t key : requests[i].keys) number += Table::word_of(key);
      Objects::make(number, seed, wanted.data());
      auto sealed = sealer.seal(objects.get(look_up(requests[i], copy.data()), !flat), i);
      if (sealer.open(sealed, i) != wanted)
        throw std::runtime_error("--verify: the answer to request " + std::to_string(i) + " is not its object");
    }
  }
};

apps::Outcome work(apps::App& app, const apps::Settings& settings, const Shape& shape) {
  std::size_t count = shape.requests != 0 ? shape.requests : settings.size_bytes / kBytesARequest;
  std::size_t request_bytes = count * sizeof(Request);
  if (request_bytes > settings.size_bytes / 2)
    throw std::invalid_argument("so many --requests take more than half of --size: give fewer, or a larger size");
  double data_bytes = static_cast<double>(settings.size_bytes - request_bytes);
  auto entries = static_cast<std::size_t>(data_bytes * kTableShare) / Table::bytes_for_entry(shape.value_bytes);
  auto objects = static_cast<std::size_t>(data_bytes * (1 - kTableShare)) / kObjectBytes;
  if (entries > UINT32_MAX) throw std::invalid_argument("--size has more entries than a table can have (2^32 - 1)");
  if (entries < kLookups) throw std::invalid_argument("--size has fewer than 32 entries of so many --value-bytes");

  Service service{Table(entries, shape.value_bytes), Objects(objects, settings.seed),
                  draw_requests(count, entries, objects, shape.skew, settings.seed), shape.value_bytes, shape.flat};
  unsigned members = apps::members(settings);
  std::vector<std::uint64_t> checks(members);
  app.measure([&] {
    apps::on_team(settings, [&](unsigned i) { checks[i] = service.answer(apps::share(count, i, members)); });
  });
  if (settings.verify) service.verify(settings.seed);
  return {
      .footprint_bytes = service.table.bytes() + service.objects.bytes() + request_bytes,
      .operations = count,
      .check = std::accumulate(checks.begin(), checks.end(), std::uint64_t{0}),
      .figures = {
          {"entries", entries}, {"value_bytes", shape.value_bytes}, {"objects", objects}, {"priority", !shape.flat}}};
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("webservice", "Answers requests out of a hash table and an array of large objects");
  app.offer_fibers();
  Shape shape;
  app.options().number("--value-bytes", shape.value_bytes, "of an entry of the table; 4 and 1600 in the papers", 4,
                       1 << 20);
  app.options().number("--skew", shape.skew, "of Zipf's distributions of keys and objects", 0.01, 10.0);
  app.options().number("--requests", shape.requests, "of all threads together; 0: one for 4 KiB of --size", 0,
                       std::uint64_t{1} << 40);
  app.options().flag("--flat", shape.flat, "do not say that objects may leave before entries");
  return app.run(argc, argv, [&](const apps::Settings& settings) { return work(app, settings, shape); });
}
