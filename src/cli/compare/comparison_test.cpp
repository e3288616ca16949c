#include "cli/compare/comparison.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/units.hpp"

namespace hinterland::cli {
namespace {

Measured measured(double seconds, std::uint64_t mebibytes, std::uint64_t pages_in = 0, double waited = 0) {
  Measured run;
  run.wall_ns = static_cast<std::uint64_t>(seconds * 1e9);
  run.peak_bytes = mebibytes * kMiB;
  run.pages_in = pages_in;
  run.waited_ns = static_cast<std::uint64_t>(waited * 1e9);
  return run;
}

Series native() { return {{}, {measured(2.1, 400), measured(2, 400), measured(1.9, 400)}, ""}; }

Series far(std::vector<Measured> runs) { return {{Way::Kind::far, "zmem:", 200 * kMiB, 50, 0}, std::move(runs), ""}; }

Series swap(std::vector<Measured> runs, std::string failure) {
  return {{Way::Kind::swap, "", 200 * kMiB, 50, 0}, std::move(runs), std::move(failure)};
}

std::string said(const Comparison& all) {
  std::string text;
  for (const std::string& line : verdict(all)) text += line + "\n";
  return text;
}

TEST(Comparison, SaysTimesMemoryAndHowMuchSwapTakes) {
  Comparison all{"app", {native(), far({measured(3, 260, 5000)}), swap({measured(4.5, 240, 6000)}, "")}, ""};
  EXPECT_EQ(all.native().median_s(), 2);
  EXPECT_EQ(all.native().least_s(), 1.9);
  EXPECT_EQ(all.slow_down(all.series[1]), 1.5);
  std::string text = said(all);
  EXPECT_NE(text.find("zmem: 50 %, 200 MiB: 1.50 times the native time, with 65 % of its memory"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("Linux swap with that limit takes 2.25 times the native time: Hinterland is 1.50 times as fast"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("saves"), std::string::npos) << text;
  EXPECT_EQ(text.find("hinterland trace"), std::string::npos) << "it does not wait: " << text;
}

TEST(Comparison, SaysWhereNothingIsSaved) {
  Comparison all{"app", {native(), far({measured(2.02, 399, 5)})}, "only root can set up swap; run as root."};
  std::string text = said(all);
  EXPECT_NE(text.find("as fast as natively"), std::string::npos) << text;
  EXPECT_NE(text.find("None of these saves memory"), std::string::npos) << text;
  EXPECT_NE(text.find("Not compared with Linux swap: only root"), std::string::npos) << text;
}

TEST(Comparison, SaysWhatHintsAreFor) {
  Comparison all{"app", {native(), far({measured(4, 260, 90000, 1.8)})}, ""};
  std::string text = said(all);
  EXPECT_NE(text.find("wait for pages for about 1.8 s of 4.0 s"), std::string::npos) << text;
  EXPECT_NE(text.find("hinterland trace --local 200M --far 'zmem:'"), std::string::npos) << text;
}

TEST(Comparison, SaysThatTheKernelWouldHaveKilledItUnderSwap) {
  Comparison all{"app", {native(), far({measured(3, 260)}), swap({measured(4.5, 240), measured(4.5, 240)}, "")}, ""};
  EXPECT_EQ(said(all).find("killed"), std::string::npos) << said(all);
  all.series[2].runs[1].kills_diverted = 3;
  EXPECT_NE(said(all).find("the kernel would have killed the program there 3 times"), std::string::npos) << said(all);
  EXPECT_NE(comparison_json(all).dump(2).find("\"kills_diverted\": 3"), std::string::npos);
}

TEST(Comparison, AProgramThatTheKernelKilledUnderSwapHasNoTime) {
  Comparison all{"app", {native(), far({measured(3, 260)}), swap({}, "was ended by signal 9")}, ""};
  EXPECT_NE(said(all).find("Under Linux swap with that limit the program was ended by signal 9"), std::string::npos);
  EXPECT_NE(comparison_text(all).find("was ended by signal 9"), std::string::npos);
  EXPECT_NE(comparison_markdown(all).find("| Linux swap 50 %, 200 MiB | was ended by signal 9 |"), std::string::npos);
}

TEST(Comparison, APageShowsNamesAsTheyAre) {
  Comparison all{"a<b>&c", {native()}, ""};
  std::string page = comparison_html(all);
  EXPECT_NE(page.find("a&lt;b&gt;&amp;c on far memory"), std::string::npos);
  EXPECT_EQ(page.find("a<b>"), std::string::npos);
}

TEST(Comparison, TheFirstLineThatDiffersIsFound) {
  std::string folder = ::testing::TempDir();
  auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder + name, std::ios::binary) << text;
    return folder + name;
  };
  std::string one = write("hl_compare_one", "a\nb\nc\n"), same = write("hl_compare_same", "a\nb\nc\n");
  EXPECT_EQ(first_difference(one, same), 0u);
  EXPECT_EQ(first_difference(one, write("hl_compare_other", "a\nB\nc\n")), 2u);
  EXPECT_EQ(first_difference(one, write("hl_compare_longer", "a\nb\nc\nd\n")), 4u);
  EXPECT_EQ(first_difference(write("hl_compare_none", ""), one), 1u);
}

}  // namespace
}  // namespace hinterland::cli
