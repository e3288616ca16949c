#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/options.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const Option& row : all_options()) unsetenv(variable_name(row).c_str());
  }
};

TEST_F(SettingsTest, DefaultsComeFromTheTable) {
  Settings settings = settings_from_environment().value();
  EXPECT_GT(settings.local_bytes, 4 * kMiB);
  EXPECT_EQ(settings.far_url, "zmem:");
  EXPECT_EQ(settings.policy, "learner");
  EXPECT_EQ(settings.read_ahead_pages, 64u);
  EXPECT_EQ(settings.window_bytes, 4096 * kGiB);
  EXPECT_FALSE(settings.take_over_at_start);
  EXPECT_EQ(settings.take, Settings::Take::automatic);
  EXPECT_EQ(settings.key_file, "");
  EXPECT_EQ(settings.timeout_ns, 5'000'000'000u);
  EXPECT_FALSE(settings.without_move || settings.without_poison);
  EXPECT_EQ(settings.reclaim, Reclaim::adaptive);
  EXPECT_EQ(settings.verbosity, 0);
}

TEST_F(SettingsTest, ReadsEveryVariable) {
  const char* values[][2] = {
      {"LOCAL", "64M"},    {"FAR", "file:/tmp/x"},
      {"POLICY", "fifo"},  {"READ_AHEAD", "7"},
      {"WINDOW", "1T"},    {"TAKEOVER", "start"},
      {"TAKE", "protect"}, {"KEY_FILE", "/k"},
      {"TIMEOUT", "1s"},   {"WITHOUT", "move,write-protect,vectored-discard,second-reclaimer,second-mapper"},
      {"VERBOSE", "2"},    {"RECLAIM", "hermit"}};
  for (auto& [name, value] : values) setenv((std::string("HINTERLAND_") + name).c_str(), value, 1);
  Settings settings = settings_from_environment().value();
  EXPECT_EQ(settings.local_bytes, 64 * kMiB);
  EXPECT_EQ(settings.far_url, "file:/tmp/x");
  EXPECT_EQ(settings.policy, "fifo");
  EXPECT_EQ(settings.read_ahead_pages, 7u);
  EXPECT_EQ(settings.window_bytes, 1024 * kGiB);
  EXPECT_TRUE(settings.take_over_at_start);
  EXPECT_EQ(settings.take, Settings::Take::protect);
  EXPECT_EQ(settings.key_file, "/k");
  EXPECT_EQ(settings.timeout_ns, 1'000'000'000u);
  EXPECT_TRUE(settings.without_move && settings.without_write_protect && settings.without_vectored_discard);
  EXPECT_FALSE(settings.without_poison);
  EXPECT_FALSE(settings.parts.second_reclaimer || settings.parts.second_mapper);
  EXPECT_TRUE(settings.parts.feedback && settings.parts.write_back_thread && settings.parts.read_ahead);
  EXPECT_EQ(settings.reclaim, Reclaim::hermit);
  EXPECT_EQ(settings.verbosity, 2);
}

TEST_F(SettingsTest, AnEmptyVariableIsNone) {
  setenv("HINTERLAND_POLICY", "", 1);
  EXPECT_EQ(settings_from_environment().value().policy, "learner");
}

TEST_F(SettingsTest, QuietWins) {
  setenv("HINTERLAND_QUIET", "1", 1);
  EXPECT_EQ(settings_from_environment().value().verbosity, -1);
}

TEST_F(SettingsTest, TheErrorNamesTheVariable) {
  setenv("HINTERLAND_TAKE", "mov", 1);
  Result<Settings> settings = settings_from_environment();
  ASSERT_FALSE(settings);
  EXPECT_STREQ(settings.error().what(), "HINTERLAND_TAKE: there is no 'mov'");
  EXPECT_STREQ(settings.error().next_step(), "did you mean 'move'?");
}

}  // namespace
}  // namespace hinterland
