// Operators (operator.hpp) over far pages, real servers and the real kernel: the same as over ordinary memory,
// whatever state the pages are in, and whether the server has the operator, has another, or has lost it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/stats.hpp"
#include "far/test_support.hpp"
#include "hinterland/operator.hpp"
#include "paging/testing/offload_twins.hpp"

namespace hinterland::testing {
namespace {

// No power of two: some lie on two pages.
struct Trip {
  std::uint32_t from, to;
  double price;
  std::uint64_t minutes;
};
struct Limits {
  double above;
  std::uint32_t from;
};
struct Found {
  std::uint64_t count, last, minutes;
  double sum;
  bool operator==(const Found&) const = default;
};

void find_trips(const void* argument, std::uint64_t first, const void* piece, std::size_t bytes, void* result) {
  const auto* limits = static_cast<const Limits*>(argument);
  const auto* trips = static_cast<const Trip*>(piece);
  auto* found = static_cast<Found*>(result);
  for (std::size_t i = 0; i < bytes / sizeof(Trip); ++i) {
    if (trips[i].price <= limits->above || trips[i].from != limits->from) continue;
    ++found->count;
    found->last = first + i;
    found->minutes += trips[i].minutes;
    found->sum += trips[i].price;
  }
}

constexpr hl_operator kTrips = {HL_OPERATOR_ABI_VERSION, 3, "trips",   sizeof(Trip), sizeof(Limits),
                                sizeof(Found),           0, find_trips};

// The largest result, of any bytes, without an argument.
struct Digest {
  std::uint64_t sums[64];
  bool operator==(const Digest&) const = default;
};
void digest(const void*, std::uint64_t word, const void* piece, std::size_t bytes, void* result) {
  auto* made = static_cast<Digest*>(result);
  for (std::size_t i = 0; i < bytes; ++i)
    made->sums[i % 64] = made->sums[i % 64] * 31 + static_cast<const unsigned char*>(piece)[i] + word;
}
constexpr hl_operator kDigest = {HL_OPERATOR_ABI_VERSION, 1, "digest", 1, 0, sizeof(Digest), 0, digest};

pid_t g_test_process;

// In the program it does the same wherever it is; at the server it dies, or does not return.
void crash_at_server(const void*, std::uint64_t, const void* piece, std::size_t, void* result) {
  if (::getppid() != g_test_process && ::getpid() != g_test_process) __builtin_trap();
  std::memcpy(result, piece, 1);
}
void loop_at_server(const void*, std::uint64_t, const void* piece, std::size_t, void* result) {
  while (::getppid() != g_test_process && ::getpid() != g_test_process) asm volatile("" ::: "memory");
  std::memcpy(result, piece, 1);
}
constexpr hl_operator kCrashes = {HL_OPERATOR_ABI_VERSION, 1, "crashes", 1, 0, 1, 0, crash_at_server};
constexpr hl_operator kLoops = {HL_OPERATOR_ABI_VERSION, 1, "loops", 1, 0, 1, 0, loop_at_server};

Trip any_trip(std::mt19937_64& random) {
  return {static_cast<std::uint32_t>(random() % 3), static_cast<std::uint32_t>(random() % 50),
          static_cast<double>(static_cast<std::int64_t>(random())) / 1e15, random() % 1000};
}

template <typename Result, typename Argument, typename Element>
std::vector<Result> results_of(const hl_operator& which, const Argument& argument,
                               std::span<const Element> elements) {
  std::vector<Result> all;
  std::size_t next = 0;
  hl::far::apply<Result>(which, argument, elements, [&](std::size_t first, std::size_t n, const Result& result) {
    if (first != next || n == 0) throw std::logic_error("a piece is out of order");
    next += n;
    all.push_back(result);
  });
  if (next != elements.size()) throw std::logic_error("elements are left out");
  return all;
}

std::string differs(const Twins<Trip>& twins, std::mt19937_64& random) {
  const std::size_t first = random() % twins.here.size(), count = random() % (twins.here.size() - first);
  const auto far = twins.part(first, count), here = twins.part_here(first, count);
  if (random() % 3 != 0) {
    const Limits limits{static_cast<double>(random() % 9000), static_cast<std::uint32_t>(random() % 3)};
    return results_of<Found>(kTrips, limits, far) == results_of<Found>(kTrips, limits, here) ? "" : "trips";
  }
  // Pieces of any size at any place, some on two pages.
  std::vector<hl_piece> pieces(random() % 2500);
  for (hl_piece& piece : pieces)
    piece = {reinterpret_cast<const std::byte*>(twins.far.data()) + random() % (kBytes - 4096), 1 + random() % 4096,
             random()};
  std::vector<Digest> a(pieces.size()), b(pieces.size());
  hl::far::apply_at<Digest>(kDigest, hl::far::nothing{}, pieces, std::span(a));
  for (hl_piece& piece : pieces)
    piece.address =
        reinterpret_cast<const std::byte*>(twins.here.data()) +
        (static_cast<const std::byte*>(piece.address) - reinterpret_cast<const std::byte*>(twins.far.data()));
  hl::far::apply_at<Digest>(kDigest, hl::far::nothing{}, pieces, std::span(b));
  return a == b ? "" : "digest";
}

void disturb(Pager& pager, Twins<Trip>& twins, std::mt19937_64& random) {
  for (int i = 0; i < 200; ++i) twins.set(random() % twins.here.size(), any_trip(random));
  if (random() % 4 != 0) return;
  const std::size_t page = random() % (kBytes / kPageSize);
  pager.advise(reinterpret_cast<std::uintptr_t>(twins.far.data()) + page * kPageSize, kPageSize, MADV_DONTNEED);
  std::memset(reinterpret_cast<std::byte*>(twins.here.data()) + page * kPageSize, 0, kPageSize);
}

std::uint64_t offloaded() { return stat_page()->counters[Counter::pages_offloaded]; }

std::string goes_on_as_here(Pager& pager, std::uint64_t seed, bool at_server) {
  std::mt19937_64 random(seed);
  Twins<Trip> twins(pager);
  for (std::size_t i = 0; i < twins.here.size(); ++i) twins.set(i, any_trip(random));
  // All of it once by the operator that a server with one of two has, whatever the seed chooses below.
  const Limits limits{4000, 1};
  const std::size_t all = twins.here.size();
  if (results_of<Found>(kTrips, limits, twins.part(0, all)) !=
      results_of<Found>(kTrips, limits, twins.part_here(0, all)))
    return "trips, all of it";
  for (int round = 0; round < kRounds; ++round) {
    if (std::string wrong = differs(twins, random); !wrong.empty()) return wrong;
    disturb(pager, twins, random);
  }
  if ((offloaded() > 0) != at_server) return "at the server: " + std::to_string(offloaded()) + " pages";
  return audit(pager, true);
}

struct Place {
  const char* name;
  std::vector<hl_operator> operators;
  bool at_server = true, faults_by_signal = false, has_them = true;
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

hl_operator of_another_version() {
  hl_operator other = kTrips;
  other.version = 2;
  other.compute = loop_at_server;
  return other;
}

// The server must outlive what it was given.
ServerOptions serving(const std::vector<hl_operator>& operators) {
  ServerOptions options = offload_server_options();
  for (const hl_operator& each : operators) options.operators.push_back({&each, each.name});
  return options;
}

class PagerOperators : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    g_test_process = ::getpid();
    seed_ = far::testing::test_seed();
    std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    options_.faults_by_signal = GetParam().faults_by_signal;
    if (GetParam().at_server) serve(GetParam().operators);
  }
  void serve(const std::vector<hl_operator>& operators) {
    server_ = std::make_unique<ServerProcess>(serving(operators));
    options_.far_url = server_->url();
  }
  std::uint64_t seed_ = 0;
  RealPagerOptions options_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_P(PagerOperators, ResultsAreThoseOfOrdinaryMemory) {
  run_with_real_pager(options_, [this](Pager& pager) { return goes_on_as_here(pager, seed_, GetParam().has_them); });
}

INSTANTIATE_TEST_SUITE_P(
    Places, PagerOperators,
    ::testing::Values(Place{"server", {kTrips, kDigest}}, Place{"serverBySignal", {kDigest, kTrips}, true, true},
                      Place{"serverWithOneOfTwo", {kTrips}},
                      Place{"serverWithAnotherVersion", {of_another_version()}, true, false, false},
                      Place{"serverWithNone", {}, true, false, false}, Place{"mem", {}, false, false, false}),
    [](const auto& place) { return std::string(place.param.name); });

class PagerOperatorsServer : public PagerOperators {};

// What is far stays far: also the pages on which an element begins that ends on the next.
TEST_P(PagerOperatorsServer, FarPagesStayFar) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<Trip> twins(pager);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.set(i, any_trip(random));
    const std::size_t first = 4 * kMiB / sizeof(Trip);  // long gone
    const std::uint64_t before = far_pages(pager);
    if (before < 1024) return "too little is far: " + std::to_string(before);
    const Limits limits{0, 1};
    for (int round = 0; round < 20; ++round)
      if (results_of<Found>(kTrips, limits, twins.part(0, first)) !=
          results_of<Found>(kTrips, limits, twins.part_here(0, first)))
        return "trips";
    const std::uint64_t after = far_pages(pager);
    return after + 64 >= before ? "" : std::to_string(before - after) + " pages were fetched";
  });
}

// It costs its operator and nobody else: the results are the program's own, and other operators go on.
TEST_P(PagerOperatorsServer, AnOperatorThatGoesWrongIsWithdrawn) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i % 512;
    const auto bytes = std::as_bytes(twins.part(0, 4 * kMiB / 8));
    for (const hl_operator& wrong : {kCrashes, kLoops}) {
      const std::uint64_t before = offloaded();
      for (int round = 0; round < 3; ++round)
        for (unsigned char first : results_of<unsigned char>(wrong, hl::far::nothing{}, bytes))
          if (first != 0) return wrong.name;
      if (offloaded() != before) return std::string("not withdrawn: ") + wrong.name;
      if (results_of<Digest>(kDigest, hl::far::nothing{}, bytes).size() != 1024) return "digest";
      if (offloaded() == before) return std::string("nothing is offered any more, after ") + wrong.name;
    }
    return audit(pager, true);
  });
}

TEST_P(PagerOperatorsServer, ThreadsAskAtOnce) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<Trip> twins(pager);
    std::mt19937_64 random(seed_);
    for (std::size_t i = 0; i < twins.here.size(); ++i) twins.set(i, any_trip(random));
    return ask_at_once(pager, twins, seed_, 6, differs);
  });
}

TEST_P(PagerOperatorsServer, BadInputIsSaid) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    twins.far[0] = 1;
    auto refuses = [](auto ask) {
      try {
        ask();
        return false;
      } catch (const std::invalid_argument&) {
        return true;
      }
    };
    auto visit = [](auto...) {};
    hl_operator other = kDigest;
    if (!refuses([&] { hl::far::apply<Digest>(kTrips, Limits{}, twins.part(0, 10), visit); }))
      return "size of a result";
    if (!refuses([&] { hl::far::apply<Found>(kTrips, 5, twins.part(0, 10), visit); })) return "size of an argument";
    if (!refuses([&] { hl::far::apply<Found>(kTrips, Limits{}, twins.part(0, 10), visit); }))
      return "size of an element";
    other.abi_version = 2;
    if (!refuses([&] { hl::far::apply<Digest>(other, hl::far::nothing{}, std::as_bytes(twins.part(0, 10)), visit); }))
      return "an interface that is not this one";
    Digest result;
    for (std::size_t bytes : {std::size_t{0}, std::size_t{4097}, ~std::size_t{0}}) {
      const hl_piece piece{twins.far.data(), bytes, 0};
      if (!refuses(
              [&] { hl::far::apply_at<Digest>(kDigest, hl::far::nothing{}, {&piece, 1}, std::span(&result, 1)); }))
        return "a piece of " + std::to_string(bytes);
      unsigned char done = 0;
      if (pager.apply(kDigest, nullptr, {&piece, 1}, &result, &done) != EINVAL || done != 0) return "EINVAL";
    }
    const hl_piece fine{twins.far.data(), 8, 0};
    if (!refuses([&] { hl::far::apply_at<Digest>(kDigest, hl::far::nothing{}, {&fine, 1}, std::span(&result, 0)); }))
      return "no room";
    for (auto spoil :
         {+[](hl_operator& each) { each.name = ""; }, +[](hl_operator& each) { each.name = "a b"; },
          +[](hl_operator& each) { each.name = "12345678901234567890123456789012"; },
          +[](hl_operator& each) { each.name = nullptr; }, +[](hl_operator& each) { each.result_bytes = 513; },
          +[](hl_operator& each) { each.result_bytes = 0; }, +[](hl_operator& each) { each.argument_bytes = 257; },
          +[](hl_operator& each) { each.element_bytes = 0; }, +[](hl_operator& each) { each.reserved = 1; }}) {
      hl_operator spoilt = kDigest;
      spoil(spoilt);
      unsigned char done = 0;
      if (pager.apply(spoilt, &fine, {&fine, 1}, &result, &done) != EINVAL || done != 0) return "a spoilt operator";
    }
    // What is nowhere is not done, and touches nothing.
    const hl_piece nowhere{reinterpret_cast<const void*>(~std::uintptr_t{0} - 4095), 4000, 0};
    unsigned char done = 0;
    return pager.apply(kDigest, nullptr, {&nowhere, 1}, &result, &done) == 0 && done == 0 ? ""
                                                                                          : "a piece that is nowhere";
  });
}

TEST_P(PagerOperatorsServer, ParentAndChildAskOnTheirOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    const auto bytes = std::as_bytes(twins.part(0, kMiB / 8));
    const auto right = results_of<Digest>(kDigest, hl::far::nothing{}, bytes);
    auto again = [&] { return results_of<Digest>(kDigest, hl::far::nothing{}, bytes) == right; };
    if (int error = pager.before_fork(); error != 0) return "before_fork: " + std::to_string(error);
    pid_t child = fork();
    if (child == 0) {
      pager.after_fork_in_child();
      bool fine = true;
      for (int i = 0; i < 20 && fine; ++i) fine = again();
      _exit(fine ? 0 : 1);
    }
    pager.after_fork_in_parent(child > 0);
    for (int i = 0; i < 20; ++i)
      if (!again()) return "in the parent";
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 ? audit(pager, false) : "the child: " + std::to_string(status);
  });
}

INSTANTIATE_TEST_SUITE_P(Places, PagerOperatorsServer,
                         ::testing::Values(Place{"server", {kTrips, kDigest, kCrashes, kLoops}}),
                         [](const auto& place) { return std::string(place.param.name); });

}  // namespace
}  // namespace hinterland::testing
