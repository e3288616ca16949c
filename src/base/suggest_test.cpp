#include "base/suggest.hpp"

#include <gtest/gtest.h>

namespace hinterland {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("TCP", "tcp"), 0u);
  EXPECT_EQ(edit_distance("tpc", "tcp"), 1u) << "a swap of neighbours is one edit";
  EXPECT_EQ(edit_distance("lantecy", "latency"), 2u);
}

TEST(NearestName, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("tpc", {"mem", "zmem", "file", "tcp"}), "tcp");
  EXPECT_EQ(nearest_name("memm", {"mem", "zmem", "file", "tcp"}), "mem");
  EXPECT_EQ(nearest_name("MEM", {"mem", "zmem"}), "mem");
  EXPECT_EQ(nearest_name("bandwith", {"latency", "bandwidth", "inner"}), "bandwidth");
  EXPECT_EQ(nearest_name("--lcal", {"--far", "--local"}), "--local");
}

TEST(NearestName, DoesNotGuessWildly) {
  EXPECT_EQ(nearest_name("http", {"mem", "zmem", "file"}), "");
  EXPECT_EQ(nearest_name("x", {"y"}), "");
  EXPECT_EQ(nearest_name("", {"mem"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(Suggestion, NamesTheNearestOrAll) {
  EXPECT_EQ(suggestion("tpc", {"mem", "tcp"}), "did you mean 'tcp'?");
  EXPECT_EQ(suggestion("nonsense", {"mem", "tcp"}), "valid are mem, tcp");
  EXPECT_EQ(suggestion("nonsense", {"size"}), "the only valid one is size");
}

}  // namespace
}  // namespace hinterland
