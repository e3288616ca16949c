#include "base/json.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace hinterland {
namespace {

TEST(JsonTest, PairsThatBeginWithATextAreAnObjectAndAllElseIsAnArray) {
  EXPECT_EQ((Json{{"a", 1}, {"b", "c"}}).dump(), R"({"a":1,"b":"c"})");
  EXPECT_EQ((Json{1, "c"}).dump(), R"([1,"c"])");
  EXPECT_EQ((Json{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ((Json{{"outer", {{"inner", nullptr}}}}).dump(), R"({"outer":{"inner":null}})");
  EXPECT_EQ(Json::array({{{"a", 1}}}).dump(), R"([{"a":1}])");
  EXPECT_EQ(Json(std::vector<int>{1, 2}).dump(), "[1,2]");
}

TEST(JsonTest, NumbersKeepTheirKind) {
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(2.0).dump(), "2.0");
  EXPECT_EQ(Json(true).dump(), "true");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
}

TEST(JsonTest, WholeNumbersAreEqualWhateverTheirType) {
  EXPECT_EQ(Json(2), Json(2u));
  EXPECT_EQ(Json(2u), Json(2));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NE(Json(2), Json("2"));
}

TEST(JsonTest, LevelsAreIndented) {
  EXPECT_EQ((Json{{"a", Json::array({1, 2})}, {"none", Json::array()}}).dump(2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"none\": []\n}");
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplacedAndControlsEscaped) {
  EXPECT_EQ(Json("a\xff\n\"").dump(), "\"a\xEF\xBF\xBD\\n\\\"\"");
  EXPECT_EQ((Json{{"\xff", 1}}).dump(), "{\"\xEF\xBF\xBD\":1}");
}

TEST(JsonTest, MembersAreFoundAddedAndReplaced) {
  Json json = Json::object();
  json["first"] = 1;
  json["second"]["inner"] = "x";
  json.update(Json{{"first", 2}, {"third", 3}});
  EXPECT_EQ(json.dump(), R"({"first":2,"second":{"inner":"x"},"third":3})");
  ASSERT_NE(json.find("second"), nullptr);
  EXPECT_EQ(json.find("second")->find("inner")->text(), "x");
  EXPECT_EQ(json.find("fourth"), nullptr);
  EXPECT_EQ(Json(1).find("first"), nullptr);
}

TEST(JsonTest, WhatIsReadIsWhatWasWritten) {
  Json json{{"numbers", {1, -2, 2.5, false, nullptr}}, {"text", "a\tb"}, {"empty", Json::object()}};
  bool well_formed = false;
  Json read = Json::parse(json.dump(1), &well_formed);
  EXPECT_TRUE(well_formed);
  EXPECT_EQ(read.dump(), json.dump());
}

TEST(JsonTest, ATextThatIsNotJsonIsSaidToBeNone) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "\"\xff\""}) {
    bool well_formed = true;
    EXPECT_TRUE(Json::parse(text, &well_formed).is_null()) << text;
    EXPECT_FALSE(well_formed) << text;
  }
}

TEST(JsonTest, QuestionsToAValueOfAnotherKindAreAnsweredWithNothing) {
  EXPECT_EQ(Json("text").whole(), 0);
  EXPECT_EQ(Json("text").size(), 0u);
  EXPECT_EQ(Json(1).text(), "");
  EXPECT_TRUE(Json(1).elements().empty());
  EXPECT_DOUBLE_EQ(Json(3).number(), 3.0);
  EXPECT_EQ(Json(3.9).whole(), 3);
}

}  // namespace
}  // namespace hinterland
