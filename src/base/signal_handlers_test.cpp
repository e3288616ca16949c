#include "base/signal_handlers.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>

namespace hinterland::signal_handlers {
namespace {

int g_settled = 0;

// One process: what it promises cannot be taken back, so the steps follow each other in one test.
TEST(SignalHandlers, ArePossibleUntilShownOtherwiseAndAgainFromTheFirstOn) {
  EXPECT_TRUE(possible());
  look();
  EXPECT_TRUE(possible()) << "nobody promised to say when a handler comes";
  promise_to_expect();
  look();
  // The test's own runtime may have handlers (sanitizers do): only faults do not count.
  if (possible()) GTEST_SKIP() << "this process has signal handlers from its start";
  set_settle([] { ++g_settled; });
  expect(SIGSEGV);
  expect(0);
  expect(1000);
  EXPECT_FALSE(possible());
  EXPECT_EQ(g_settled, 0);
  expect(SIGUSR1);
  EXPECT_TRUE(possible());
  EXPECT_EQ(g_settled, 1);
  expect(SIGUSR2);
  EXPECT_EQ(g_settled, 1) << "waits only for the first";
  look();
  EXPECT_TRUE(possible());
}

TEST(SignalHandlersDeathTest, OneThatIsThereAlreadyIsSeen) {
  EXPECT_EXIT(
      {
        signal(SIGUSR1, [](int) {});
        promise_to_expect();
        look();
        _exit(possible() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hinterland::signal_handlers
