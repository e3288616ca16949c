#include "object/block_profile.hpp"

#include <gtest/gtest.h>

namespace hinterland::object {
namespace {

constexpr std::uintptr_t kPage = 4096;

TEST(BlockProfile, ChoosesNothingUntilItIsTold) {
  BlockProfile profile;
  for (std::size_t bytes : {1, 16, 48, 2048}) EXPECT_TRUE(profile.pays(bytes));
}

TEST(BlockProfile, WhatIsUsedAloneInItsPagePaysAndWhatComesTogetherDoesNot) {
  BlockProfile counted;
  counted.begin_counting(16);
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    counted.made(40), counted.made(100), counted.made(500);
    counted.brought(40, i * 7919 * kPage);                  // each time another page
    counted.brought(100, (i / 32) * kPage + i % 32 * 128);  // all of a page, and then the next
  }
  BlockProfile chosen;
  ASSERT_TRUE(chosen.choose(counted.text()));
  EXPECT_TRUE(chosen.pays(48));
  EXPECT_TRUE(chosen.pays(33));
  EXPECT_FALSE(chosen.pays(100));
  EXPECT_FALSE(chosen.pays(500));  // never brought
  EXPECT_TRUE(chosen.any_pays());
  EXPECT_FALSE(chosen.pays(16));  // never made
}

TEST(BlockProfile, NothingPaysWhereWhatIsBroughtAloneIsLittle) {
  BlockProfile profile;
  EXPECT_TRUE(profile.any_pays());
  ASSERT_TRUE(profile.choose("hinterland objects 1\n48 1000 100000 2000\n# text\n64 10 10 10\n"));
  EXPECT_FALSE(profile.any_pays());
  ASSERT_TRUE(profile.choose("hinterland objects 1\n48 1000 100000 2000\n64 2000 2000 2000\n"));
  EXPECT_FALSE(profile.pays(48));
  EXPECT_TRUE(profile.pays(64));
}

TEST(BlockProfile, WhatIsNoProfileIsSaidAndChoosesNothing) {
  BlockProfile profile;
  const std::string good = "hinterland objects 1\n48 10 10 10\n";
  for (const std::string& bad :
       {std::string(), std::string("hinterland sites 1\n"), good + "64 1 1\n", good + "65 1 1 1\n",
        good + "64 1 1 1 1\n", good + "4096 1 1 1\n", good + "64 x 1 1\n"}) {
    const Status status = profile.choose(bad);
    ASSERT_FALSE(status) << bad;
    EXPECT_NE(std::string(status.error().what()).find("is none of a profile"), std::string::npos);
    EXPECT_TRUE(profile.pays(16));
  }
  EXPECT_TRUE(profile.choose(good));
  EXPECT_FALSE(profile.pays(16));
}

}  // namespace
}  // namespace hinterland::object
