// Data frames (dataframe.hpp) over the real kernel, real servers and little local memory, through random operations,
// against rows in ordinary memory: whatever is far, and wherever, the results are the same.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "far/test_support.hpp"
#include "hinterland/dataframe.hpp"
#include "paging/testing/dataframe_model.hpp"
#include "paging/testing/offload_twins.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace {

using hinterland::Pager;

int compute_by_pager(const hl_computation* what, const void* address, std::size_t count, const std::size_t* indices,
                     void* results, unsigned char* done) {
  return Pager::current()->compute(*what, reinterpret_cast<std::uintptr_t>(address), count, indices, results, done);
}
int compose_by_pager(std::uint32_t element_bytes, const hl_composed_page* pages, std::size_t count,
                     const hl_composed_part* parts, std::size_t parts_count, unsigned char* done) {
  return Pager::current()->compose(element_bytes, std::span(pages, count), std::span(parts, parts_count), done);
}
void hint_by_pager(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  hinterland::Hint wanted;
  wanted.address = reinterpret_cast<std::uintptr_t>(address);
  wanted.size = size;
  wanted.read_ahead = read_ahead;
  if ((flags & HL_HINT_NO_WAIT) != 0)
    Pager::current()->begin_hint(wanted);
  else
    Pager::current()->hint(wanted);
}
// Ordinary memory where there is no pager.
int create_region(hl_region* region, std::size_t size, const hl_region_options*, std::size_t) {
  constexpr std::size_t kUnit = 65536;
  size = (size + kUnit - 1) / kUnit * kUnit;
  if (Pager* pager = Pager::current()) {
    const std::intptr_t address = pager->map(size, kUnit, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (address < 0) return static_cast<int>(-address);
    *region = {reinterpret_cast<void*>(address), size, 0};
    return 0;
  }
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return errno;
  *region = {mapped, size, 0};
  return 0;
}
int destroy_region(hl_region* region) {
  if (Pager* pager = Pager::current())
    return -pager->unmap(reinterpret_cast<std::uintptr_t>(region->data), region->size);
  return munmap(region->data, region->size) == 0 ? 0 : errno;
}
const char* region_error() { return "no memory"; }

}  // namespace

// Where the library's would be.
struct hl_runtime hl_runtime = {6,
                                0,
                                0,
                                0,
                                nullptr,
                                hint_by_pager,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                destroy_region,
                                region_error,
                                create_region,
                                compute_by_pager,
                                nullptr,
                                compose_by_pager,
                                nullptr};

namespace hinterland::testing {
namespace {

constexpr std::size_t kRows = 140'000;  // more than are sorted at a time
#if defined(__SANITIZE_THREAD__)        // the steps are those of one thread
constexpr int kSteps = 3;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kSteps = 6;
#else
constexpr int kSteps = 12;
#endif

struct Setting {
  const char* name;
  const char* url;  // "tcp:": a server of the test's own; "": no pager
  bool offers = false;
};
void PrintTo(const Setting& place, std::ostream* out) { *out << place.name; }

void show_runtime(Pager& pager) {
#ifdef __SANITIZE_THREAD__
  // The header reads the map by plain loads, which may be out of date (hint.h): here all hints ask the runtime.
  void* nothing_there =
      mmap(nullptr, pager.window_bytes() / kPageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (nothing_there == MAP_FAILED) std::abort();
  hl_runtime.map = static_cast<const unsigned char*>(nothing_there);
#else
  hl_runtime.map = reinterpret_cast<const unsigned char*>(pager.hint_map());
#endif
  hl_runtime.base = pager.window_base();
  hl_runtime.size = pager.window_bytes();
}

std::string goes_on_as_rows(std::uint64_t seed, std::size_t rows, int steps) {
  FrameAndRows both(seed, rows);
  for (int step = 0; step < steps; ++step)
    if (std::string wrong = both.step(); !wrong.empty()) return "step " + std::to_string(step) + ": " + wrong;
  return both.check();
}

class PagerDataframe : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    seed_ = far::testing::test_seed();
    std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    options_.far_url = GetParam().url;
    if (options_.far_url.empty()) return;
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
    if (options_.far_url != "tcp:") return;
    ServerOptions serving = offload_server_options();
    serving.memory_bytes = 64 * std::uint64_t{far::kSlabBytes};
    serving.compute = GetParam().offers;
    server_ = std::make_unique<ServerProcess>(serving);
    options_.far_url = server_->url();
  }
  std::uint64_t seed_ = 0;
  RealPagerOptions options_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_P(PagerDataframe, HoldsWhatRowsHold) {
  if (options_.far_url.empty()) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "there is one thread, and no pager";
#endif
    EXPECT_EQ(goes_on_as_rows(seed_, kRows, kSteps), "");
    return;
  }
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    show_runtime(pager);
    const std::string wrong = goes_on_as_rows(seed_, kRows, kSteps);
    if (!wrong.empty()) return wrong;
    const hl::far::column<std::uint64_t> large(std::size_t{1} << 20, 5);
    if (far_pages(pager) == 0) return "nothing was far";
    return hl::far::sum(large) == 5 * large.size() ? "" : "sum";
  });
}

TEST_P(PagerDataframe, ThreadsHaveFramesOfTheirOwn) {
  const auto at_once = [this]() -> std::string {
    std::array<std::string, 3> wrong;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      threads.emplace_back([&, i] { wrong[i] = goes_on_as_rows(seed_ + i, 40'000, 4); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each : wrong)
      if (!each.empty()) return each;
    return "";
  };
  if (options_.far_url.empty()) {
    EXPECT_EQ(at_once(), "");
    return;
  }
  run_with_real_pager(options_, [&](Pager& pager) {
    show_runtime(pager);
    return at_once();
  });
}

INSTANTIATE_TEST_SUITE_P(Places, PagerDataframe,
                         ::testing::Values(Setting{"ordinary", ""}, Setting{"mem", "mem:"},
                                           Setting{"server", "tcp:", true},
                                           Setting{"takingNoMore", "sim:fail_writes=0.01,seed=3,inner=mem:"}),
                         [](const auto& place) { return std::string(place.param.name); });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the same code as over mem:
INSTANTIATE_TEST_SUITE_P(MorePlaces, PagerDataframe,
                         ::testing::Values(Setting{"zmem", "zmem:"}, Setting{"serverThatOffersNothing", "tcp:"}),
                         [](const auto& place) { return std::string(place.param.name); });
#endif

sigjmp_buf g_no_page;
void on_no_page(int) { siglongjmp(g_no_page, 1); }

// As everything else that reads far memory. A frame that was not changed stays as it is.
TEST(PagerDataframeServer, AServerThatDiedRaisesTheSignalOfALostPage) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  ServerProcess server(offload_server_options());
  RealPagerOptions options;
  options.far_url = server.url();
  run_with_real_pager(options, [&server](Pager& pager) -> std::string {
    show_runtime(pager);
    hl::far::dataframe frame;
    frame.set("x", hl::far::column<std::int64_t>(std::size_t{1} << 20, 7));
    if (frame.where("x", hl::far::compare::equal, 7).rows() != frame.rows()) return "where";
    kill(server.pid(), SIGKILL);
    signal(SIGBUS, on_no_page);
    if (sigsetjmp(g_no_page, 1) == 0) {
      frame.sort_by("x");
      return "rows that are lost were sorted";
    }
    return frame.rows() == std::size_t{1} << 20 ? "" : "the frame has changed";
  });
}

// Some pages can never be read. Then there is a signal, and never other rows.
TEST(PagerDataframeServer, ReadsThatFailGiveNoOtherRows) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  RealPagerOptions options;
  options.far_url = "sim:fail_reads=0.02,seed=3,inner=mem:";
  run_with_real_pager(options, [](Pager& pager) -> std::string {
    show_runtime(pager);
    std::vector<hl::far::dataframe> frames(20);
    signal(SIGBUS, on_no_page);
    // Kept over the jumps. A page may leave while it is written, and cannot be had then: its column is made anew.
    static volatile std::size_t filled = 0;
    static_cast<void>(sigsetjmp(g_no_page, 1));
    while (filled < frames.size()) {
      hl::far::column<std::int64_t> numbers(51'200);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i % 1024);
      frames[filled].set("x", std::move(numbers));
      filled = filled + 1;
    }
    static volatile int signals = 0;
    // Which reads fail depends on how threads take turns: each frame once, and then until one has failed.
    static volatile std::size_t looks = 0;
    while (looks < frames.size() || (signals == 0 && looks < 100 * frames.size())) {
      const hl::far::dataframe& frame = frames[looks % frames.size()];
      looks = looks + 1;
      if (sigsetjmp(g_no_page, 1) != 0) {
        signals = signals + 1;
        continue;
      }
      const hl::far::dataframe found = frame.where("x", hl::far::compare::equal, 7);
      if (found.rows() != 50) return "other rows";
      for (const std::int64_t each : found.get<std::int64_t>("x"))
        if (each != 7) return "another number";
    }
    return signals != 0 ? "" : "every page could be read: nothing was tested";
  });
}

}  // namespace
}  // namespace hinterland::testing
