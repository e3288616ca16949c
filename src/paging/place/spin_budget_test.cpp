#include "paging/place/spin_budget.hpp"

#include <gtest/gtest.h>

namespace hinterland {
namespace {

// One question whose answer takes so long. True when the whole time was spent looking.
bool ask(SpinBudget& budget, std::uint64_t answer_ns) {
  budget.start(1000);
  bool looked = budget.spin(1000) && budget.spin(1000 + answer_ns);
  budget.answered();
  return looked;
}

TEST(SpinBudgetTest, LooksWhileAnswersAreFast) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(ask(budget, 10'000));
}

TEST(SpinBudgetTest, StopsWhenTheyAreSlowAndTriesAgain) {
  SpinBudget budget;
  int spins = 0;
  for (int i = 0; i < 1000; ++i) {
    budget.start(0);
    spins += budget.spin(0);
    budget.spin(SpinBudget::kSpinNs);
    budget.answered();
  }
  EXPECT_GT(spins, 8 + 10);
  EXPECT_LT(spins, 100);
}

TEST(SpinBudgetTest, FindsOutThatTheyHaveBecomeFast) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) ask(budget, SpinBudget::kSpinNs);
  for (int i = 0; i < 70; ++i) ask(budget, 5'000);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(ask(budget, 5'000));
}

}  // namespace
}  // namespace hinterland
