#include "base/options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/available_memory.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

std::string error_of(const Result<std::uint64_t>& result) {
  if (result) return "no error";
  return std::string(result.error().what()) + " | " + result.error().next_step();
}

TEST(OptionTable, IdsNameTheirRows) {
  EXPECT_STREQ(option(OptionId::local).name, "local");
  EXPECT_STREQ(option(OptionId::read_ahead).name, "read-ahead");
  EXPECT_STREQ(option(OptionId::stat_dir).name, "stat-dir");
  EXPECT_STREQ(option(OptionId::best_effort).name, "best-effort");
  EXPECT_STREQ(option(OptionId::watch).name, "watch");
  EXPECT_EQ(variable_name(option(OptionId::read_ahead)), "HINTERLAND_READ_AHEAD");
}

TEST(OptionTable, EveryRowIsCompleteAndItsDefaultValid) {
  std::set<std::string> names;
  for (const Option& row : all_options()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_STRNE(row.help, "") << row.name;
    EXPECT_NE(row.commands, 0) << row.name;
    EXPECT_NE(std::string(row.example).find(row.letter != 0 ? std::string{row.letter} : row.name), std::string::npos)
        << row.name;
    bool takes_value = row.type != OptionType::flag && row.type != OptionType::level;
    EXPECT_EQ(takes_value, row.placeholder[0] != '\0') << row.name;
    EXPECT_EQ(
        row.type == OptionType::choice || row.type == OptionType::choice_or_file || row.type == OptionType::choices,
        !choices_of(row).empty());
    if (row.default_text[0] != '\0') {
      EXPECT_TRUE(parse_value(row, row.default_text, row.name)) << row.name;
    }
  }
}

TEST(OptionValue, Sizes) {
  const Option& local = option(OptionId::local);
  EXPECT_EQ(parse_value(local, "64M", "--local"), 64 * kMiB);
  EXPECT_EQ(error_of(parse_value(local, "1M", "--local")),
            "--local: 1M is too small | the minimum is 4M; for example --local 512M");
  for (const char* wrong : {"0", "-1", "", "1X", "999999T", "M", "101%", "0%", "x%", "%"})
    EXPECT_FALSE(parse_value(local, wrong, "--local")) << wrong;
  std::uint64_t half = parse_value(local, "50%", "--local").value();
  EXPECT_GT(half, available_memory().bytes() / 4);
  EXPECT_EQ(half % kPageSize, 0u);
}

TEST(OptionValue, NumbersTimesAndFlags) {
  const Option& ahead = option(OptionId::read_ahead);
  EXPECT_EQ(parse_value(ahead, "0", "x"), 0u);
  EXPECT_EQ(parse_value(ahead, "64", "x"), 64u);
  for (const char* wrong : {"65", "-1", "1.5", "", "ten", "4x"})
    EXPECT_FALSE(parse_value(ahead, wrong, "x")) << wrong;
  EXPECT_EQ(parse_value(option(OptionId::timeout), "250ms", "x"), 250'000'000u);
  EXPECT_FALSE(parse_value(option(OptionId::timeout), "1ms", "x"));
  EXPECT_EQ(parse_value(option(OptionId::quiet), "yes", "x"), 1u);
  EXPECT_EQ(parse_value(option(OptionId::quiet), "0", "x"), 0u);
  EXPECT_FALSE(parse_value(option(OptionId::quiet), "maybe", "x"));
}

TEST(OptionValue, ChoicesNameTheNearest) {
  EXPECT_EQ(parse_value(option(OptionId::policy), "fifo", "x"), 2u);
  EXPECT_EQ(error_of(parse_value(option(OptionId::policy), "fifi", "--policy")),
            "--policy: there is no 'fifi' | did you mean 'fifo'?");
  EXPECT_EQ(parse_value(option(OptionId::without), "poison,write-protect", "x"), 5u);
  EXPECT_FALSE(parse_value(option(OptionId::without), "", "x"));
  EXPECT_FALSE(parse_value(option(OptionId::without), "move,", "x"));
  EXPECT_FALSE(parse_value(option(OptionId::without), "move,,poison", "x"));
}

}  // namespace
}  // namespace hinterland
