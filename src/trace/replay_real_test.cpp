// Replay against the real pager, fault by fault: the same accesses on the pager's own parts, over the fake kernel,
// and through the model. Where one of both finds a page, the other must find it, too.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "paging/testing/page_machine.hpp"
#include "policy/policies.hpp"
#include "trace/replay.hpp"

namespace hinterland::trace {
namespace {

using hinterland::testing::MachineOptions;
using hinterland::testing::PageMachine;

struct Access {
  std::uint32_t page;
  bool write;
};

// What accesses have met so far.
struct Met {
  std::uint64_t first_touch, fetches, refaults, protection, pages_in, pages_out;
  bool operator==(const Met&) const = default;
  Met operator-(const Met& before) const {
    return {first_touch - before.first_touch, fetches - before.fetches,   refaults - before.refaults,
            protection - before.protection,   pages_in - before.pages_in, pages_out - before.pages_out};
  }
  std::string text() const {
    return std::to_string(first_touch) + " first touches, " + std::to_string(fetches) + " fetches, " +
           std::to_string(refaults) + " refaults, " + std::to_string(protection) + " first writes, " +
           std::to_string(pages_in) + " pages in, " + std::to_string(pages_out) + " out";
  }
};

class RealPager {
 public:
  explicit RealPager(const MachineOptions& options) : machine_(options, 1), before_(counters()) {
    machine_.map(0, options.window_pages, PROT_READ | PROT_WRITE);
    // As Pager::Impl::create_parts() does it for a device that answers at once.
    Core& core = machine_.core();
    core.second_chance.saves_a_fetch = false;
    core.second_chance.enabled = (options.policy->flags & HL_POLICY_LEAVES_AT_ONCE) == 0;
    if (options.policy->worth_a_frame == nullptr) core.budget.park_few();
  }

  // Reclaim in the background is done before the next access, as in the model.
  void access(const Access& access) {
    if (access.write)
      machine_.write(access.page);
    else
      machine_.read(access.page);
    Budget& budget = machine_.core().budget;
    for (bool goes_on = budget.should_start(); goes_on && !budget.should_stop();)
      goes_on = machine_.parts().background->reclaim(budget.batch_until_stop(Evictor::kBatchMax)) != 0;
  }
  Met met() const { return counters() - before_; }
  std::uint64_t first_page() const { return machine_.address_of(0) >> kPageShift; }
  const std::string& failure() const { return machine_.failure(); }

 private:
  static Met counters() {
    auto of = [](Counter counter) -> std::uint64_t { return stat_page()->counters[counter]; };
    return {of(Counter::faults_first_touch), of(Counter::faults_read) + of(Counter::faults_write),
            of(Counter::faults_refault),     of(Counter::faults_write_protect),
            of(Counter::pages_in),           of(Counter::pages_out)};
  }

  PageMachine machine_;
  const Met before_;
};

class ReplayedPager {
 public:
  ReplayedPager(const MachineOptions& options, std::uint64_t first_page)
      : first_page_(first_page), replay_(options_like(options)) {}

  void access(const Access& access) {
    bool fresh = touched_.size() <= access.page || !touched_[access.page];
    if (touched_.size() <= access.page) touched_.resize(access.page + 1);
    touched_[access.page] = true;
    replay_.fault({.page = first_page_ + access.page,
                   .kind = fresh          ? FaultKind::first_touch
                           : access.write ? FaultKind::write
                                          : FaultKind::read,
                   .write = access.write});
  }
  Met met() const {
    const ReplayResult& result = replay_.result();
    return {result.first_touch, result.fetches,  result.refaults,
            result.protection,  result.pages_in, result.pages_out};
  }

 private:
  static ReplayOptions options_like(const MachineOptions& options) {
    ReplayOptions replayed;
    replayed.local_bytes = bytes_of_pages(options.budget_pages);
    replayed.policy = options.policy;
    replayed.read_ahead_pages = options.read_ahead_pages;
    return replayed;
  }

  const std::uint64_t first_page_;
  Replay replay_;
  std::vector<bool> touched_;
};

constexpr std::uint32_t kPages = 2048;

using Program = std::vector<Access> (*)(std::mt19937_64&);

// Writes all of its memory, so that no page is all zero, and goes on as `next` says.
template <typename Next>
std::vector<Access> after_filling(Next&& next) {
  std::vector<Access> accesses;
  for (std::uint32_t page = 0; page < kPages; ++page) accesses.push_back({page, true});
  for (int i = 0; i < 10'000; ++i) accesses.push_back(next(static_cast<std::uint32_t>(i)));
  return accesses;
}

std::vector<Access> random_accesses(std::mt19937_64& random) {
  return after_filling(
      [&](std::uint32_t) { return Access{static_cast<std::uint32_t>(random() % kPages), random() % 4 == 0}; });
}

std::vector<Access> loops(std::mt19937_64& random) {
  return after_filling([&](std::uint32_t i) { return Access{i % kPages, random() % 16 == 0}; });
}

// Seven accesses of eight are to an eighth of the pages.
std::vector<Access> skewed(std::mt19937_64& random) {
  return after_filling([&](std::uint32_t) {
    std::uint32_t most = random() % 8 != 0 ? kPages / 8 : kPages;
    return Access{static_cast<std::uint32_t>(random() % most), random() % 8 == 0};
  });
}

std::vector<Access> columns(std::mt19937_64& random) {
  return after_filling([&](std::uint32_t i) { return Access{i * 25 % kPages, random() % 8 == 0}; });
}

class ReplayRealTest : public ::testing::TestWithParam<const hl_policy_ops*> {
 protected:
  void compare(Program program, std::uint32_t read_ahead_pages, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Access> accesses = program(random);
    MachineOptions options;
    options.policy = GetParam();
    options.window_pages = 2 * kPages;  // what a stream reads ahead at the end of these pages is there, too
    options.budget_pages = 400;
    options.frames = 2048;
    options.read_ahead_pages = read_ahead_pages;
    RealPager real(options);
    ReplayedPager replayed(options, real.first_page());
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      real.access(accesses[i]);
      replayed.access(accesses[i]);
      ASSERT_EQ(real.failure(), "");
      ASSERT_EQ(replayed.met().text(), real.met().text())
          << "access " << i << " to page " << accesses[i].page << (accesses[i].write ? ", written" : ", read")
          << ", read-ahead " << read_ahead_pages << ", seed " << seed;
    }
    EXPECT_GT(real.met().fetches, 100u) << "the test shows nothing";
  }
};

TEST_P(ReplayRealTest, RandomAccesses) {
  for (std::uint64_t seed : {1, 2, 3}) compare(random_accesses, 0, seed);
}
TEST_P(ReplayRealTest, SkewedAccesses) {
  for (std::uint64_t seed : {1, 2, 3}) compare(skewed, 0, seed);
}
TEST_P(ReplayRealTest, Loops) {
  for (std::uint32_t read_ahead : {0u, 16u}) compare(loops, read_ahead, 1);
}
TEST_P(ReplayRealTest, Columns) {
  for (std::uint32_t read_ahead : {0u, 16u}) compare(columns, read_ahead, 1);
}

INSTANTIATE_TEST_SUITE_P(Policies, ReplayRealTest,
                         ::testing::Values(&kFifoPolicy, &kSecondChancePolicy, &kLearnerPolicy),
                         [](const auto& policy) { return std::string(policy.param->name).substr(0, 4); });

}  // namespace
}  // namespace hinterland::trace
