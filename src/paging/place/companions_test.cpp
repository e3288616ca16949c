#include "paging/place/companions.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "kernel/scheduling.hpp"

namespace hinterland::testing {
namespace {

// The first two CPUs that this process may use.
class CompanionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!several_cpus_allowed()) GTEST_SKIP() << "one CPU";
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&two_);
    for (int cpu = 0; CPU_COUNT(&two_) < 2; ++cpu)
      if (CPU_ISSET(static_cast<unsigned>(cpu), &all)) {
        CPU_SET(static_cast<unsigned>(cpu), &two_);
        last_ = cpu;
      }
  }

  cpu_set_t two_;
  int last_ = -1;
  Companions companions_;
};

TEST_F(CompanionsTest, OneThatIsKeptOffAllButOneCpuKnowsThatThereAreSeveral) {
  companions_.allow(two_);
  std::thread([&] {
    companions_.join();
    companions_.keep_off(0, last_);
    EXPECT_FALSE(several_cpus_allowed()) << "its own";
    EXPECT_TRUE(companions_.several_cpus());
    companions_.keep_off(0, -1);
    EXPECT_TRUE(several_cpus_allowed());
  }).join();
}

TEST_F(CompanionsTest, AProcessThatIsTiedToOneCpuHasOne) {
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(last_), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_FALSE(companions_.several_cpus());
    companions_.allow(one);
    EXPECT_FALSE(companions_.several_cpus());
  }).join();
}

}  // namespace
}  // namespace hinterland::testing
