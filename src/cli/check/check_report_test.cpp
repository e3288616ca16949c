#include "cli/check/check_report.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/check/choice_file.hpp"

namespace hinterland::cli {
namespace {

CheckFound made() {
  CheckFound found;
  found.program = "./app";
  found.clock = "wall";
  found.pairs = 16;
  found.checked.modules = {{0xabc, 40, "/there/app", true}};
  for (std::uint64_t number : {3, 5, 9}) {
    trace::Site place;
    place.function = "find";
    place.file = "/src/tree.c";
    place.line = static_cast<int>(10 * number);
    found.checked.sites.push_back({0, {number, 100000 * number, number == 9 ? 1u : 900u * number}, place});
  }
  found.groups = {{{1}, {std::log(1.1), 0.01}}, {{0}, {std::log(0.5), 0.01}}};
  return found;
}

TEST(CheckReport, LosersAreOffAndTheFileSaysWhy) {
  CheckFound found = made();
  EXPECT_EQ(found.on(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(found.dropped_sites(), 1u);
  const std::string text =
      profile_of(found.checked, found.on(), [&](std::size_t site) { return found.why_off(site); });
  EXPECT_EQ(text,
            "hinterland sites 1\nmodule 0000000000000abc 40 /there/app\n3 300000 2700\n"
            "# 5 500000 4500 dropped: on costs +10.0 % (+- 1.1 %)\n# 9 900000 1 its page was hardly ever missing\n");
  const Result<CheckedSites> read = sites_in({text});
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->sites.size(), 1u) << "what is off is a comment";
  EXPECT_EQ(read->sites[0].counted.number, 3u);
}

TEST(CheckReport, WhatLosesTogetherIsTakenBack) {
  CheckFound found = made();
  found.taken_back = true;
  EXPECT_EQ(found.on(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(found.dropped_sites(), 0u);
  EXPECT_NE(check_text(found).find("the profile's choice stands"), std::string::npos);
}

TEST(CheckReport, SaysItInWords) {
  CheckFound found = made();
  found.ways = {{"no hints", {2, 3, 2.5}}, {"the profile's", {1, 1, 1}}, {"the choice", {0.9, 0.9, 0.9}}};
  const std::string text = check_text(found);
  for (const char* words :
       {"of 40 hints 3 were passed", "the profile leaves 2 on", "+10.0 %", "dropped  tree.c:50 find",
        "gains    tree.c:30 find", "1 of 2 hints lose", "no hints 2.50 s"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  const Json json = check_json(found);
  EXPECT_EQ(json.find("groups")->elements()[0].find("verdict")->text(), "dropped");
  EXPECT_EQ(json.find("sites_dropped")->whole(), 1);
}

TEST(CheckReport, CountsOfSeveralProcessesAreAdded) {
  const std::string one = "hinterland sites 1\nmodule abc 40 app\n3 10 1\n";
  const std::string other = "hinterland sites 1\nmodule def 2 lib.so\n1 4 4\nmodule abc 40 app\n3 5 2\n4 1 1\n";
  const Result<CheckedSites> sum = sites_in({one, other});
  ASSERT_TRUE(sum.has_value());
  ASSERT_EQ(sum->modules.size(), 2u);
  ASSERT_EQ(sum->sites.size(), 3u);
  EXPECT_EQ(sum->sites[0].counted.passes, 15u);
  EXPECT_EQ(sum->sites[0].counted.misses, 3u);
  EXPECT_EQ(sum->misses(), 8u);
  EXPECT_FALSE(sites_in({one, "no profile"}).has_value());
}

class ChoiceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hinterland-check-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string folder_;
};

TEST_F(ChoiceFileTest, LiesBesideTheProgram) {
  const Result<ChoiceFile> file = ChoiceFile::find("", folder_ + "/app", false);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->path(), folder_ + "/app.sites");
  EXPECT_TRUE(file->is_read_by_run());
  ASSERT_TRUE(file->write("hinterland sites 1\n").has_value());
  EXPECT_EQ(text_of(folder_ + "/app.sites"), "hinterland sites 1\n");
  EXPECT_TRUE(ChoiceFile::find("", folder_ + "/app", false).has_value()) << "a profile is written over";
}

TEST_F(ChoiceFileTest, LiesInTheCacheWhereThereIsNoFolderToWriteTo) {
  const Result<ChoiceFile> file = ChoiceFile::find("", "/proc/self/app", false);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->path().starts_with(folder_ + "/cache/hinterland/app-")) << file->path();
  EXPECT_TRUE(file->is_read_by_run());
  ASSERT_TRUE(file->write("hinterland sites 1\n").has_value());
  EXPECT_EQ(text_of(file->path()), "hinterland sites 1\n");
}

TEST_F(ChoiceFileTest, LeavesOtherFilesAlone) {
  std::ofstream(folder_ + "/app.sites") << "something of the user's\n";
  const Result<ChoiceFile> file = ChoiceFile::find("", folder_ + "/app", false);
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(std::string(file.error().next_step()).find("--output"), std::string::npos);
  EXPECT_TRUE(ChoiceFile::find("", folder_ + "/app", true).has_value()) << "but with --force";
  EXPECT_FALSE(ChoiceFile::find("", "", false).has_value()) << "libraries alone";
  const Result<ChoiceFile> named = ChoiceFile::find(folder_ + "/mine", "", false);
  ASSERT_TRUE(named.has_value());
  EXPECT_FALSE(named->is_read_by_run());
}

}  // namespace
}  // namespace hinterland::cli
