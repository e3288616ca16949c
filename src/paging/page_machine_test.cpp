// The page machine under a random program: after every step its invariants hold as equations.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>

#include "far/test_support.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/policies.hpp"

namespace hinterland::testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(HINTERLAND_COVERAGE)
constexpr int kStepsEach = 2'000;  // slow, and nothing more is found: one thread, and by then all lines were executed
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kStepsEach = 6'000;  // ten times as slow; builds without it check the invariants at every step, too
#else
constexpr int kStepsEach = 20'000;
#endif

struct Variant {
  const char* name;
  MachineOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

MachineOptions base_options() {
  MachineOptions options;
  options.policy = &kSecondChancePolicy;
  return options;
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  all.push_back({"MoveDirect", base_options()});
  all.push_back({"MoveQueued", base_options()});
  all.back().options.direct = false;
  all.push_back({"MoveQueuedFailing", base_options()});
  all.back().options.direct = false;
  all.back().options.device_failures = true;
  all.push_back({"CopyDirectFifo", base_options()});
  all.back().options.take_by_move = false;
  all.back().options.policy = &kFifoPolicy;
  all.push_back({"CopyFailing", base_options()});
  all.back().options.take_by_move = false;
  all.back().options.direct = false;
  all.back().options.device_failures = true;
  all.push_back({"MoveWithoutWriteProtection", base_options()});
  all.back().options.features.write_protect = false;
  all.push_back({"SmallRing", base_options()});
  all.back().options.frames = 32;
  all.push_back({"MoveDirectLru", base_options()});
  all.back().options.policy = &kLruPolicy;
  all.push_back({"MoveQueuedPriority", base_options()});
  all.back().options.direct = false;
  all.back().options.policy = &kPriorityPolicy;
  all.push_back({"MoveDirectLearner", base_options()});
  all.back().options.policy = &kLearnerPolicy;
  all.push_back({"MoveQueuedFailingLearner", base_options()});
  all.back().options.direct = false;
  all.back().options.device_failures = true;
  all.back().options.policy = &kLearnerPolicy;
  all.push_back({"CopyFailingLearner", all[all.size() - 1].options});
  all.back().options.take_by_move = false;
  all.push_back({"TwoDevicesLearner", base_options()});
  all.back().options.second = MachineOptions::Second::queued;
  all.back().options.policy = &kLearnerPolicy;
  all.push_back({"TwoDevices", base_options()});
  all.back().options.second = MachineOptions::Second::queued;
  all.push_back({"TwoDevicesFailing", base_options()});
  all.back().options.second = MachineOptions::Second::direct;
  all.back().options.direct = false;
  all.back().options.device_failures = true;
  all.push_back({"TwoDevicesQueuedFailingLru", base_options()});
  all.back().options.second = MachineOptions::Second::queued;
  all.back().options.direct = false;
  all.back().options.device_failures = true;
  all.back().options.policy = &kLruPolicy;
  return all;
}

class PageMachineTest : public ::testing::TestWithParam<Variant> {};

TEST_P(PageMachineTest, RandomProgramKeepsTheInvariants) {
  std::uint64_t seed = far::testing::test_seed();
  std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  PageMachine machine(GetParam().options, seed);
  machine.map(0, 300, PROT_READ | PROT_WRITE);
  // Goes on, where the device fails, until a page was lost and seen, and until enough came from far: rarely that
  // takes longer. (A full device is left alone for 50 ms, which is thousands of steps where nothing else is at work.)
  auto seen_enough = [&] {
    return !GetParam().options.device_failures ||
           (machine.lost_pages_seen() > 0 && machine.far_fetches() > kStepsEach / 70u);
  };
  for (int step = 0; step < kStepsEach || (!seen_enough() && step < 20 * kStepsEach); ++step) {
    machine.random_step();
    std::string wrong = machine.check_invariants(step % 64 == 63 ? 0 : 4);
    ASSERT_EQ(wrong, "") << "after step " << step << " (" << machine.last_step() << "), seed " << seed;
  }
  EXPECT_GT(machine.far_fetches(), kStepsEach / 70u);  // it did page
  EXPECT_EQ(machine.lost_pages_seen() > 0, GetParam().options.device_failures);
}

INSTANTIATE_TEST_SUITE_P(Variants, PageMachineTest, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace hinterland::testing
