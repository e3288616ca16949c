// Plug-ins: what is checked of their answers, and what happens when one is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include "paging/page/policy_host.hpp"
#include "paging/testing/victims.hpp"
#include "policy/plugin.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPluginPages = 4096;

// FIFO, until a test makes it do something else.
struct Plugin {
  static inline std::function<std::uint32_t(hl_page*, std::uint32_t, std::uint32_t)> spoil;  // out, max, chosen
  static inline std::vector<hl_page> used, missed_pages, next;
  static inline std::uint32_t next_count = HL_OWN_READ_AHEAD;
  static inline hl_policy_env environment;

  static void* create(const hl_policy_env* env) {
    environment = *env;
    return kFifoPolicy.create(env);
  }
  static std::uint32_t choose(void* state, hl_page* out, std::uint32_t max) {
    std::uint32_t chosen = kFifoPolicy.choose_victims(state, out, max);
    return spoil ? spoil(out, max, chosen) : chosen;
  }
  static void accessed(void*, hl_page page, hl_access) { used.push_back(page); }
  static std::uint32_t missed(void*, hl_page page, hl_page* out, std::uint32_t max) {
    missed_pages.push_back(page);
    std::copy_n(next.begin(), std::min<std::size_t>(max, next.size()), out);
    return next_count;
  }
};

const hl_policy_ops kPlugin = {.abi_version = HL_POLICY_ABI_VERSION,
                               .name = "plugin",
                               .help = "",
                               .create = Plugin::create,
                               .arrived = kFifoPolicy.arrived,
                               .departed = kFifoPolicy.departed,
                               .choose_victims = Plugin::choose,
                               .size = kFifoPolicy.size,
                               .accessed = Plugin::accessed,
                               .missed = Plugin::missed,
                               .flags = 0};

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() {
    Plugin::spoil = nullptr;
    Plugin::used = Plugin::missed_pages = Plugin::next = {};
    Plugin::next_count = HL_OWN_READ_AHEAD;
    budget_.set_limit(1024 * kPageSize);
    if (!pages_.create(kPluginPages)) std::abort();
    for (std::uint32_t page = kPluginPages; page-- > 16;) pages_.note_used({page});  // the first group is not in use
    if (!host_.create(&kPlugin, pages_, {.budget = &budget_, .settings = "a=1", .instead = &kFifoPolicy}))
      std::abort();
  }
  std::set<hl_page> choose(std::size_t count) {
    std::vector<hl_page> victims = testing::victims_of(host_, count);
    return {victims.begin(), victims.end()};
  }
  // Of 100 pages that were there all have left in the end, none twice, and the built-in policy was asked for the
  // rest.
  void expect_that_it_is_replaced() {
    host_.arrived({100}, 100, HL_ARRIVAL_FAULT);
    std::set<hl_page> left = choose(10);
    EXPECT_STREQ(host_.name(), "fifo");
    host_.arrived({300}, 5, HL_ARRIVAL_FAULT);
    host_.departed({300}, 1);
    for (int round = 0; round < 20; ++round)
      for (hl_page page : choose(10)) EXPECT_TRUE(left.insert(page).second) << page;
    for (hl_page page = 100; page < 200; ++page) EXPECT_TRUE(left.contains(page)) << page;
    EXPECT_FALSE(left.contains(300));
    EXPECT_TRUE(left.contains(304));
    EXPECT_EQ(host_.size(), 0u);
  }
  Budget budget_;
  PageTable pages_;
  PolicyHost host_;
};

TEST_F(PluginTest, IsAskedAsABuiltInPolicyIs) {
  host_.arrived({100}, 100, HL_ARRIVAL_FAULT);
  EXPECT_EQ(choose(3), (std::set<hl_page>{100, 101, 102}));
  EXPECT_STREQ(host_.name(), "plugin");
}

TEST_F(PluginTest, KnowsItsSettingsTheBudgetAndPlaces) {
  EXPECT_STREQ(Plugin::environment.settings, "a=1");
  EXPECT_EQ(Plugin::environment.capacity(Plugin::environment.runtime), 1024u);
  budget_.set_limit(512 * kPageSize);
  EXPECT_EQ(Plugin::environment.capacity(Plugin::environment.runtime), 512u);
  hl_page page = pages_.dense_of({1000});
  EXPECT_EQ(Plugin::environment.place_of(Plugin::environment.runtime, page), 1000u);
  EXPECT_EQ(Plugin::environment.page_at(Plugin::environment.runtime, 1001), pages_.dense_of({1001}));
  EXPECT_EQ(Plugin::environment.page_at(Plugin::environment.runtime, 3), HL_NO_PAGE);  // never used
  EXPECT_EQ(Plugin::environment.page_at(Plugin::environment.runtime, UINT64_MAX), HL_NO_PAGE);
}

TEST_F(PluginTest, ThatReturnsAPageTwiceIsReplaced) {
  Plugin::spoil = [](hl_page* out, std::uint32_t, std::uint32_t chosen) {
    if (chosen > 1) out[chosen - 1] = out[0];
    return chosen;
  };
  expect_that_it_is_replaced();
}

TEST_F(PluginTest, ThatReturnsAPageThatDoesNotExistIsReplaced) {
  Plugin::spoil = [](hl_page* out, std::uint32_t, std::uint32_t chosen) {
    out[0] = HL_NO_PAGE;
    return chosen;
  };
  expect_that_it_is_replaced();
}

TEST_F(PluginTest, ThatReturnsTooManyIsReplaced) {
  Plugin::spoil = [](hl_page*, std::uint32_t max, std::uint32_t) { return max + 1; };
  expect_that_it_is_replaced();
}

TEST_F(PluginTest, ThatReturnsNothingIsReplaced) {
  Plugin::spoil = [](hl_page*, std::uint32_t, std::uint32_t) { return 0u; };
  expect_that_it_is_replaced();
}

TEST_F(PluginTest, WithNothingToReturnIsNot) {
  EXPECT_TRUE(choose(10).empty());
  EXPECT_STREQ(host_.name(), "plugin");
}

TEST_F(PluginTest, IsToldOfUsesAndMisses) {
  host_.arrived({100}, 1, HL_ARRIVAL_FAULT);
  host_.used({100}, HL_ACCESS_WRITE);
  EXPECT_EQ(Plugin::used, std::vector<hl_page>{pages_.dense_of({100})});
  std::array<PageIndex, 8> next;
  EXPECT_FALSE(host_.missed({200}, next).has_value());  // the runtime's own
  Plugin::next = {pages_.dense_of({201}), pages_.dense_of({205})};
  Plugin::next_count = 2;
  EXPECT_EQ(host_.missed({200}, next), 2u);
  EXPECT_EQ(next[0], PageIndex{201});
  EXPECT_EQ(next[1], PageIndex{205});
  EXPECT_EQ(Plugin::missed_pages.size(), 2u);
}

// chosen_ahead_test.cpp has the rule.
TEST_F(PluginTest, ReadsAheadAsMuchAsIsUsed) {
  constexpr std::uint32_t kFirst = 1024;
  for (std::uint32_t page = kFirst; page < kPluginPages; ++page) pages_[{page}].reset(PageWord{}.far(far::FarPage{}));
  Plugin::next.resize(8);
  Plugin::next_count = 8;
  std::array<PageIndex, 8> next;
  std::uint32_t at = 0;
  // Of the eight that it wants with a miss the program uses all, or none; so many pages come in meanwhile. Returns
  // how many are allowed.
  auto miss = [&](bool used) {
    for (hl_page& page : Plugin::next) page = pages_.dense_of({kFirst + at++ % (kPluginPages - kFirst)});
    std::vector<hl_page> wanted = Plugin::next;
    std::size_t allowed = host_.missed({200}, next).value();
    std::vector<PageIndex> brought(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(allowed));
    for (std::size_t i = 0; used && i < wanted.size(); ++i)
      if (PageIndex page = pages_.page_of(wanted[i]); std::ranges::count(brought, page) == 0) {
        Plugin::next_count = 0;
        static_cast<void>(host_.missed(page, next));
      }
    Plugin::next_count = 8;
    host_.arrived({300}, 9, HL_ARRIVAL_FAULT);
    host_.departed({300}, 9);
    return allowed;
  };
  EXPECT_EQ(miss(false), 8u);
  for (int i = 0; i < 4000; ++i) miss(false);
  EXPECT_LE(miss(false), 1u);
  for (int i = 0; i < 4000; ++i) miss(true);
  EXPECT_GE(miss(true), 7u);
}

TEST_F(PluginTest, ThatWantsAPageThatDoesNotExistIsReplaced) {
  Plugin::next = {kPluginPages};
  Plugin::next_count = 1;
  std::array<PageIndex, 8> next;
  EXPECT_FALSE(host_.missed({200}, next).has_value());
  EXPECT_STREQ(host_.name(), "fifo");
}

TEST_F(PluginTest, ThatWantsTooManyPagesIsReplaced) {
  Plugin::next = {20};
  Plugin::next_count = 9;
  std::array<PageIndex, 8> next;
  EXPECT_FALSE(host_.missed({200}, next).has_value());
  EXPECT_STREQ(host_.name(), "fifo");
}

// A region's pool has arrays of its own, and is watched as the process's is.
TEST_F(PluginTest, IsWatchedInARegion) {
  int pool = host_.open_pool(nullptr, 0, -1);
  ASSERT_GT(pool, 0);
  host_.assign({{512}, 64}, pool);
  Plugin::spoil = [](hl_page* out, std::uint32_t, std::uint32_t chosen) {
    if (chosen > 1) out[1] = out[0];
    return chosen;
  };
  host_.arrived({512}, 64, HL_ARRIVAL_FAULT);
  std::set<hl_page> left;
  for (int round = 0; round < 10; ++round) left.merge(choose(16));
  EXPECT_EQ(left.size(), 64u);
  EXPECT_STREQ(host_.name(), "plugin");  // the process's own has done nothing wrong
}

TEST(PolicyNamed, KnowsNamesAndTheirSettings) {
  Result<NamedPolicy> named = policy_named("s3-fifo:small=5");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->ops, &kS3FifoPolicy);
  EXPECT_EQ(named->settings, "small=5");
  EXPECT_FALSE(named->is_plugin);
  EXPECT_FALSE(policy_named("s4-fifo").has_value());
  EXPECT_FALSE(policy_named("").has_value());
}

TEST(PolicyNamed, SaysWhatIsWrongWithAFile) {
  Result<NamedPolicy> none = policy_named("./no-such-policy.so:x");
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(std::strstr(none.error().what(), "./no-such-policy.so cannot be loaded"), nullptr) << none.error().what();
}

TEST(PolicyNamed, AFileKeepsItsSettingsWithItsWholePath) {
  EXPECT_EQ(policy_with_whole_path("fifo:x"), "fifo:x");
  EXPECT_EQ(policy_with_whole_path("/:x"), "/:x");
  EXPECT_EQ(policy_with_whole_path("./no-such.so:a=/b"), "./no-such.so:a=/b");
}

TEST(CheckPlugin, FindsNothingWrongWithAnyPolicy) {
  for (const hl_policy_ops* policy : policies()) {
    Status checked = check_plugin({policy, "", true});
    EXPECT_TRUE(checked.has_value()) << policy->name << ": " << checked.error().what();
  }
}

}  // namespace
}  // namespace hinterland
