// aifm: what far objects cost. Local: a dereference beside a plain pointer, and a scope. Far: random reads of small
// objects beside the same reads of hinted pages. Shared: phases that favour objects and pages in turn, under one
// budget. Run it under `hinterland run`; bench/aifm/run does, and compares.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "command/options.hpp"
#include "hinterland/hint.h"
#include "hinterland/object.hpp"

namespace {

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

struct Item {
  std::uint64_t words[8];
};
static_assert(sizeof(Item) == 64);

struct Work {
  std::string figure;
  std::size_t size_bytes = std::size_t{256} << 20;
  int repeat = 5;
  std::uint64_t accesses = 1'000'000;
  std::size_t objects_local_bytes = 0;
};

// Cheap, and in nobody's way: xorshift.
struct Random {
  std::uint64_t state = 88172645463325252;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

std::uint64_t g_sum = 0;  // so that nothing is left out

// ns a call of body(random number), `repeat` times.
template <typename Body>
std::vector<double> timed(const Work& work, Body&& body) {
  std::vector<double> values;
  Random random;
  for (int round = 0; round < work.repeat; ++round) {
    const std::uint64_t start = hinterland::now_ns();
    for (std::uint64_t i = 0; i < work.accesses; ++i) body(random());
    values.push_back(static_cast<double>(hinterland::now_ns() - start) / static_cast<double>(work.accesses));
  }
  return values;
}

// All in the processor's second cache, so that the code is what costs.
constexpr std::size_t kFew = 2048;

std::vector<double> plain(const Work& work) {
  std::vector<Item*> items;
  for (std::size_t i = 0; i < kFew; ++i) items.push_back(new Item{{i}});
  return timed(work, [&](std::uint64_t random) { g_sum += items[random % kFew]->words[0]; });
}

std::vector<hl::far::ptr<Item>> far_items(std::size_t count) {
  std::vector<hl::far::ptr<Item>> items;
  items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) items.push_back(hl::far::make<Item>(Item{{i}}));
  return items;
}

std::vector<double> dereference(const Work& work) {
  auto items = far_items(kFew);
  hl::far::scope held;
  return timed(work, [&](std::uint64_t random) { g_sum += items[random % kFew].deref(held)->words[0]; });
}

std::vector<double> dereference_in_scope(const Work& work) {
  auto items = far_items(kFew);
  return timed(work, [&](std::uint64_t random) {
    hl::far::scope held;
    g_sum += items[random % kFew].deref(held)->words[0];
  });
}

std::vector<double> objects(const Work& work) {
  const std::size_t count = work.size_bytes / sizeof(Item);
  auto items = far_items(count);
  return timed(work, [&](std::uint64_t random) {
    hl::far::scope held;
    g_sum += items[random % count].deref(held)->words[0];
  });
}

std::vector<double> pages(const Work& work, bool hinted) {
  const std::size_t count = work.size_bytes / sizeof(Item);
  std::vector<Item> items(count);
  for (std::size_t i = 0; i < count; ++i) items[i].words[0] = i;
  return timed(work, [&](std::uint64_t random) {
    const Item* item = &items[random % count];
    if (hinted) hl_read(item);
    g_sum += item->words[0];
  });
}

void append(std::vector<double>& values, const std::vector<double>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

// Objects have a part of local memory that does not change. False, and said, when they cannot.
bool keep_apart(std::size_t bytes) {
  try {
    if (hl::far::start({.local_bytes = bytes, .device_url = "mem:"})) return true;
    std::fputs("aifm: --objects-local: only under `hinterland run`\n", stderr);
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "aifm: --objects-local: %s\n", error.what());
  }
  return false;
}

// Values of even number: accesses of objects while pages rest; odd: of pages while objects rest.
std::vector<double> phases(const Work& work) {
  const std::size_t count = work.size_bytes / sizeof(Item);
  auto far = far_items(count);
  std::vector<Item> items(count);
  for (std::size_t i = 0; i < count; ++i) items[i].words[0] = i;
  std::vector<double> values;
  Work phase = work;
  phase.repeat = 1;
  for (int i = 0; i < work.repeat; ++i) {
    append(values, timed(phase, [&](std::uint64_t random) {
             hl::far::scope held;
             g_sum += far[random % count].deref(held)->words[0];
           }));
    append(values, timed(phase, [&](std::uint64_t random) { g_sum += items[random % count].words[0]; }));
  }
  return values;
}

std::vector<double> measure(const Work& work) {
  if (work.figure == "phases") return phases(work);
  if (work.figure == "plain") return plain(work);
  if (work.figure == "dereference") return dereference(work);
  if (work.figure == "dereference-in-scope") return dereference_in_scope(work);
  if (work.figure == "objects") return objects(work);
  return pages(work, work.figure == "pages-hinted");
}

}  // namespace

int main(int argc, char** argv) {
  Work work;
  bench::Options options("aifm", "Measures far objects, and prints as JSON the ns of an access");
  options.choice(
      "figure", work.figure,
      {"plain", "dereference", "dereference-in-scope", "objects", "pages-hinted", "pages-unhinted", "phases"},
      "local: plain, dereference, dereference-in-scope; far, of --size: the others; phases: objects of "
      "--size, then pages of --size, in turn, --repeat times");
  options.size("--size", work.size_bytes, "of all objects of 64 bytes together", "256M");
  options.size("--objects-local", work.objects_local_bytes, "local memory that objects have, whatever pages need",
               "0");
  options.number("--repeat", work.repeat, "repetitions", 1, 1000);
  options.number("--accesses", work.accesses, "of one repetition", 1, UINT64_C(1) << 40);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (kDebugBuild) {
    std::fprintf(stderr, "aifm: this is a debug build, and its figures mean nothing. Build with: make bench-build\n");
    return 2;
  }
  if (work.objects_local_bytes != 0 && !keep_apart(work.objects_local_bytes)) return 1;
  const std::vector<double> values = measure(work);
  hinterland::Json document{
      {"schema_version", 1},           {"program", "aifm"}, {"figure", work.figure}, {"unit", "ns"},
      {"size_bytes", work.size_bytes}, {"values", values},  {"sum", g_sum & 1}};
  std::puts(document.dump(1).c_str());
  return 0;
}
