#include "base/site_profile_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace hinterland::site_profile {
namespace {

struct Told {
  std::vector<std::string> modules;
  std::vector<std::uint64_t> numbers;
};

Result<Told> told_of(std::string_view text) {
  Told told;
  Status done = read(
      text, [&](const Module& module) { told.modules.emplace_back(module.path); },
      [&](const Site& site) { told.numbers.push_back(site.number); });
  if (!done) return std::unexpected(done.error());
  return told;
}

TEST(SiteProfileText, TellsModulesAndSites) {
  const Result<Told> told = told_of(
      "hinterland sites 1\n# a remark\n\nmodule ff 3 /a b/app\n0 5 1\n2 7 0\n# 1 9 9 off\nmodule 1 1 lib.so\n0 1 1");
  ASSERT_TRUE(told.has_value()) << told.error().what();
  EXPECT_EQ(told->modules, (std::vector<std::string>{"/a b/app", "lib.so"}));
  EXPECT_EQ(told->numbers, (std::vector<std::uint64_t>{0, 2, 0}));
}

TEST(SiteProfileText, SaysWhichLineIsNone) {
  const std::string head = "hinterland sites 1\nmodule ff 3 app\n";
  EXPECT_STREQ(told_of("").error().what(), "it is no profile of hints: its first line is not 'hinterland sites 1'");
  for (const char* line :
       {"3 1 1", "1 1", "x", "1 1 x", "module zz 1 app", "module 1", "-1 1 1", "99999999999999999999 1 1"}) {
    const Result<Told> told = told_of(head + line + "\n");
    ASSERT_FALSE(told.has_value()) << line;
    EXPECT_STREQ(told.error().what(), "line 3 of it is none of a profile of hints") << line;
  }
  EXPECT_STREQ(told_of("hinterland sites 1\n1 1 1\n").error().what(), "line 2 of it is none of a profile of hints");
}

TEST(SiteProfileText, AHintIsWorthItOnceInAThousand) {
  EXPECT_TRUE(is_worth_it({0, 1000, 1}));
  EXPECT_TRUE(is_worth_it({0, 1, 1}));
  EXPECT_FALSE(is_worth_it({0, 2000, 1}));
  EXPECT_FALSE(is_worth_it({0, 10, 0}));
}

TEST(SiteProfileText, IdentitiesDiffer) {
  Identity one, same, moved, other_kind;
  one.add(1, 2, 3), same.add(1, 2, 3), moved.add(2, 2, 3), other_kind.add(1, 2, 0);
  EXPECT_EQ(one.value(), same.value());
  EXPECT_NE(one.value(), moved.value());
  EXPECT_NE(one.value(), other_kind.value());
  same.add(1, 2, 3);
  EXPECT_NE(one.value(), same.value());
}

TEST(SiteProfileText, HasAPlaceInTheCacheForEachProgram) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  const std::string one = path_in_cache("/a/app"), other = path_in_cache("/b/app");
  EXPECT_TRUE(one.starts_with("/cache/hinterland/app-") && one.ends_with(".sites")) << one;
  EXPECT_NE(one, other);
  setenv("XDG_CACHE_HOME", "relative", 1);  // is to be ignored, by the specification
  setenv("HOME", "/home/me", 1);
  EXPECT_TRUE(path_in_cache("/a/app").starts_with("/home/me/.cache/hinterland/app-"));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(path_in_cache("/a/app"), "");
}

}  // namespace
}  // namespace hinterland::site_profile
