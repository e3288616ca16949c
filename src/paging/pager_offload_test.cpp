// What is computed on far pages (offload.hpp) over the real kernel, real servers and the public header: the same as
// over ordinary memory, whatever state the pages are in, and whatever other threads do with their neighbours.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "far/test_support.hpp"
#include "hinterland/offload.hpp"
#include "paging/testing/offload_places.hpp"
#include "paging/testing/offload_twins.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace {

int compute_by_pager(const hl_computation* what, const void* address, std::size_t count, const std::size_t* indices,
                     void* results, unsigned char* done) {
  return hinterland::Pager::current()->compute(*what, reinterpret_cast<std::uintptr_t>(address), count, indices,
                                               results, done);
}

int apply_by_pager(const hl_operator* which, const void* argument, const hl_piece* pieces, std::size_t count,
                   void* results, unsigned char* done) {
  return hinterland::Pager::current()->apply(*which, argument, std::span(pieces, count), results, done);
}

void hint_by_pager(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  hinterland::Hint wanted;
  wanted.address = reinterpret_cast<std::uintptr_t>(address);
  wanted.size = size;
  wanted.read_ahead = read_ahead;
  if ((flags & HL_HINT_NO_WAIT) != 0)
    hinterland::Pager::current()->begin_hint(wanted);
  else
    hinterland::Pager::current()->hint(wanted);
}

int compose_by_pager(std::uint32_t element_bytes, const hl_composed_page* pages, std::size_t count,
                     const hl_composed_part* parts, std::size_t parts_count, unsigned char* done) {
  return hinterland::Pager::current()->compose(element_bytes, std::span(pages, count), std::span(parts, parts_count),
                                               done);
}

int patch_by_pager(std::uint32_t element_bytes, const hl_patched_page* pages, std::size_t count,
                   const hl_patch* patches, std::size_t patches_count, unsigned char* done) {
  return hinterland::Pager::current()->patch(element_bytes, std::span(pages, count),
                                             std::span(patches, patches_count), done);
}

struct hl_runtime runtime_by_pager() {
  struct hl_runtime runtime{};
  runtime.abi_version = 7;
  runtime.hint = hint_by_pager;
  runtime.compute = compute_by_pager;
  runtime.apply = apply_by_pager;
  runtime.compose = compose_by_pager;
  runtime.patch = patch_by_pager;
  return runtime;
}

}  // namespace

// Where the library's would be.
struct hl_runtime hl_runtime = runtime_by_pager();

namespace hinterland::testing {
namespace {

using hl::far::compare;

// "" or the operation that differs. Bits are compared, not values: of sums in particular.
template <typename T>
std::string differs(const Twins<T>& twins, std::mt19937_64& random) {
  std::size_t first = random() % twins.here.size(), count = random() % (twins.here.size() - first);
  auto far = twins.part(first, count), here = twins.part_here(first, count);
  T with = count == 0 ? T{} : here[random() % count];
  auto how = static_cast<compare>(1 + random() % 6);
  auto same = [](auto a, auto b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  switch (random() % 8) {
    case 0: {
      auto a = hl::far::sum(far), b = hl::far::sum(here);
      return same(a, b) || (a != a && b != b) ? "" : "sum";
    }
    case 1:
      return hl::far::min(far) == hl::far::min(here) ? "" : "min";
    case 2:
      return hl::far::max(far) == hl::far::max(here) ? "" : "max";
    case 3:
      return hl::far::count(far, how, with) == hl::far::count(here, how, with) ? "" : "count";
    case 4:
      return hl::far::filter(far, how, with) == hl::far::filter(here, how, with) ? "" : "filter";
    case 5: {
      auto a = hl::far::unique(far), b = hl::far::unique(here);
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0 ? "" : "unique";
    }
    case 6: {
      auto a = hl::far::median(far), b = hl::far::median(here);
      return a.has_value() == b.has_value() && (!a || same(*a, *b)) ? "" : "median";
    }
    default: {
      if (count == 0) return "";
      std::vector<std::size_t> indices(random() % 3000);
      for (std::size_t& index : indices) index = random() % count;
      std::vector<T> a(indices.size()), b(indices.size());
      hl::far::gather(far, indices, a);
      hl::far::gather(here, indices, b);
      return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0 ? "" : "gather";
    }
  }
}

// Reads, writes and gives up parts, so that pages are in all states.
template <typename T>
void disturb(Pager& pager, Twins<T>& twins, std::mt19937_64& random) {
  constexpr std::size_t kOnPage = kPageSize / sizeof(T);
  for (int i = 0; i < 200; ++i) {
    std::size_t at = random() % twins.here.size();
    if (random() % 2 == 0)
      twins.set(at, any_value<T>(random));
    else if (*const_cast<const volatile T*>(&twins.far[at]) == T{1})
      twins.set(at, T{2});
  }
  if (random() % 4 != 0) return;
  std::size_t page = random() % (kBytes / kPageSize);
  pager.advise(reinterpret_cast<std::uintptr_t>(twins.far.data()) + page * kPageSize, kPageSize, MADV_DONTNEED);
  std::fill_n(twins.here.begin() + static_cast<std::ptrdiff_t>(page * kOnPage), kOnPage, T{});
}

template <typename T>
std::string goes_on_as_here(Pager& pager, std::uint64_t seed, bool expect_far) {
  std::mt19937_64 random(seed);
  Twins<T> twins(pager);
  for (std::size_t i = 0; i < twins.here.size(); ++i)  // every third page with few values
    twins.set(i, i * sizeof(T) / kPageSize % 3 == 0 ? static_cast<T>(i % 63) : any_value<T>(random));
  for (int round = 0; round < kRounds; ++round) {
    if (std::string wrong = differs(twins, random); !wrong.empty()) return wrong;
    disturb(pager, twins, random);
  }
  if (expect_far && far_pages(pager) == 0) return "nothing was far";
  return std::equal(twins.here.begin(), twins.here.end(), twins.far.begin(),
                    [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof a) == 0; })
             ? audit(pager, true)
             : "something has changed";
}

class PagerOffload : public OffloadPlaces {};

TEST_P(PagerOffload, ResultsAreThoseOfOrdinaryMemory) {
  auto run = [this]<typename T>(T) {
    run_with_real_pager(options_, [this](Pager& pager) { return goes_on_as_here<T>(pager, seed_, true); });
  };
  run(std::int32_t{});
  run(std::int64_t{});
  run(std::uint32_t{});
  run(std::uint64_t{});
  run(float{});
  run(double{});
}

// Another thread writes elements beside those that are computed on, on the same pages; they leave and come back.
TEST_P(PagerOffload, NeighboursMayBeWritten) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    constexpr std::size_t kOnPage = kPageSize / 8;
    for (std::size_t page = 0; page < kBytes / kPageSize; ++page) twins.far[page * kOnPage + 100] = page;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      std::mt19937_64 random(seed_);
      while (!stop.load()) twins.far[random() % (kBytes / kPageSize) * kOnPage + random() % 100] = random();
    });
    std::string wrong;
    for (int round = 0; round < kRounds && wrong.empty(); ++round)
      for (std::size_t page = 0; page < kBytes / kPageSize; page += 7)
        if (hl::far::sum(twins.part(page * kOnPage + 100, 400)) != page) wrong = "page " + std::to_string(page);
    stop.store(true);
    writer.join();
    return wrong.empty() ? audit(pager, true) : wrong;
  });
}

TEST_P(PagerOffload, ThreadsAskAtOnce) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::int32_t> twins(pager);
    std::mt19937_64 random(seed_);
    for (std::size_t i = 0; i < twins.here.size(); ++i) twins.set(i, any_value<std::int32_t>(random));
    return ask_at_once(pager, twins, seed_, 10, differs<std::int32_t>);
  });
}

INSTANTIATE_TEST_SUITE_P(Places, PagerOffload,
                         ::testing::Values(OffloadPlace{"server", true, true},
                                           OffloadPlace{"serverBySignal", true, true, true},
                                           OffloadPlace{"mem", false, false}),
                         name_of);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the same code as over mem:
INSTANTIATE_TEST_SUITE_P(MorePlaces, PagerOffload,
                         ::testing::Values(OffloadPlace{"serverThatOffersNothing", true, false}), name_of);
#endif

// --- at a server only
// -------------------------------------------------------------------------------------------------

sigjmp_buf g_lost;
void on_bus(int) { siglongjmp(g_lost, 1); }

class PagerOffloadServer : public AtOffloadServer {};

// What is far stays far: nothing is fetched for it.
TEST_F(PagerOffloadServer, FarPagesStayFar) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    std::span<const std::uint64_t> first = twins.part(0, 4 * kMiB / 8);  // long gone
    std::uint64_t before = far_pages(pager);
    if (before < 1024) return "too little is far: " + std::to_string(before);
    for (int round = 0; round < 50; ++round)
      if (hl::far::sum(first) != first.size() * (first.size() - 1) / 2) return "sum";
    if (hl::far::count(first, compare::less, 1000) != 1000) return "count";
    if (hl::far::median(first) != (first.size() - 1) / 2) return "median";
    std::uint64_t after = far_pages(pager);
    return after + 64 >= before ? "" : std::to_string(before - after) + " pages were fetched";
  });
}

TEST_F(PagerOffloadServer, BadInputIsSaid) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::int64_t> twins(pager);
    for (std::int64_t& each : twins.far) each = std::numeric_limits<std::int64_t>::max();
    try {
      static_cast<void>(hl::far::sum(twins.part(0, twins.far.size())));
      return "no overflow";
    } catch (const std::overflow_error&) {
    }
    if (hl::far::sum(twins.part(0, 1)) != std::numeric_limits<std::int64_t>::max()) return "sum of one";
    std::vector<std::size_t> indices = {0, twins.far.size()};
    std::vector<std::int64_t> out = {7, 7};
    try {
      hl::far::gather(twins.part(0, twins.far.size()), indices, out);
      return "an element beyond the end";
    } catch (const std::out_of_range&) {
    }
    if (out[0] != 7) return "something was written";
    indices[1] = 1;
    try {
      hl::far::gather(twins.part(0, 10), indices, std::span(out).first(1));
      return "no room, and nobody says so";
    } catch (const std::invalid_argument&) {
    }
    // Past the header: what other languages may call.
    std::array<unsigned char, 2000> done{};
    std::array<std::uint64_t, 4000> results{};
    auto ask = [&](hl_computation what, std::uintptr_t address, std::size_t count, const std::size_t* which) {
      return pager.compute(what, address, count, which, results.data(), done.data());
    };
    auto base = reinterpret_cast<std::uintptr_t>(twins.far.data());
    namespace elements = hl::far::detail;
    const hl_computation sum{elements::sum, elements::i64, 0, 0, 0}, pick{elements::pick, elements::i64, 0, 0, 0};
    if (ask(sum, base, 10, nullptr) != 0) return "a sum";
    if (ask(sum, base + 4, 10, nullptr) != EINVAL) return "half an element";
    if (ask(sum, base, 10, indices.data()) != EINVAL) return "a sum with indices";
    if (ask(pick, base, 10, nullptr) != EINVAL) return "a choice without indices";
    if (ask(sum, base, (HL_COMPUTE_MAX + 1) * kPageSize / 8, nullptr) != EINVAL) return "too much";
    if (ask(sum, base, ~std::size_t{0} / 8, nullptr) != EINVAL) return "beyond all addresses";
    if (ask({99, elements::i64, 0, 0, 0}, base, 10, nullptr) != EINVAL) return "no such operation";
    if (ask({elements::sum, 99, 0, 0, 0}, base, 10, nullptr) != EINVAL) return "no such element";
    // An index that is in no memory is not done, and touches nothing.
    const std::size_t nowhere = ~std::size_t{0} / 16;
    done[0] = 0;
    if (ask(pick, base, 1, &nowhere) != 0 || done[0] != 0) return "an index that is nowhere";
    return "";
  });
}

// As when the page is read.
TEST_F(PagerOffloadServer, AServerThatDiedRaisesTheSignalOfALostPage) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    if (hl::far::sum(twins.part(0, 100'000)) != 99'999ull * 50'000) return "sum";
    std::uint64_t& last = twins.far.back();
    auto page_of_last = page_floor(reinterpret_cast<std::uintptr_t>(&last));
    if (int error = pager.lock(page_of_last, kPageSize, 0); error != 0) return "lock: " + std::to_string(error);
    kill(server_->pid(), SIGKILL);
    signal(SIGBUS, on_bus);
    if (sigsetjmp(g_lost, 1) == 0) {
      static_cast<void>(hl::far::sum(twins.part(0, 100'000)));
      return "a sum of pages that are lost";
    }
    signal(SIGBUS, SIG_DFL);
    // What is here can be computed on.
    last = 5;
    return hl::far::sum(twins.part(twins.far.size() - 1, 1)) == 5 ? "" : "the last";
  });
}

TEST_F(PagerOffloadServer, ParentAndChildAskOnTheirOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads in the child of a process with several threads";
#endif
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    auto right = [&] { return hl::far::sum(twins.part(0, 100'000)) == 99'999ull * 50'000; };
    if (!right()) return "sum";
    if (int error = pager.before_fork(); error != 0) return "before_fork: " + std::to_string(error);
    pid_t child = fork();
    if (child == 0) {
      pager.after_fork_in_child();
      bool fine = true;
      for (int i = 0; i < 20 && fine; ++i) fine = right();
      for (std::size_t i = 0; i < twins.far.size(); i += 100) twins.far[i] = 1;
      for (int i = 0; i < 20 && fine; ++i)
        fine = hl::far::count(twins.part(0, twins.far.size()), compare::equal, 1) == twins.far.size() / 100 + 2;
      _exit(fine ? 0 : 1);
    }
    pager.after_fork_in_parent(child > 0);
    for (int i = 0; i < 20; ++i)
      if (!right()) return "sum in the parent";
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 && right() ? audit(pager, false) : "the child: " + std::to_string(status);
  });
}

}  // namespace
}  // namespace hinterland::testing
