// Places of faults that have no stack of their own, where each fault's true place is known.
#include "advice/fault_sites.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace hinterland::trace {
namespace {

struct Fault {
  std::uint64_t address;  // of the code: its place
  std::uint64_t page;
};

class FaultSitesTest : public ::testing::Test {
 protected:
  FaultSitesTest() : path_(std::filesystem::temp_directory_path() / ("sites_test." + std::to_string(getpid()))) {}
  ~FaultSitesTest() override { std::filesystem::remove(path_); }

  // For each place: the share of its faults that are found to be its own, when one in `every` has a stack.
  std::map<std::uint64_t, double> found(const std::vector<Fault>& faults, unsigned every) {
    {
      Result<TraceWriter> writer = TraceWriter::create(path_, true);
      EXPECT_TRUE(writer);
      ProcessFacts facts;
      facts.program = "made";
      writer->process(facts);
      for (std::size_t i = 0; i < faults.size(); ++i) {
        FaultRecord record{1000 * i, faults[i].page, 1, FaultKind::read, false};
        writer->fault(record);
        if (random_() % every == 0)
          writer->sample(
              {record, record.page << kPageShift, writer->stack({{faults[i].address}, true}), every, 1000});
      }
      EXPECT_EQ(writer->flush(), 0);
    }
    Result<TraceFile> file = TraceFile::open(path_);
    EXPECT_TRUE(file);
    Symbols symbols(*file);
    FaultSites sites = find_fault_sites(*file, symbols, UINT64_MAX);
    EXPECT_EQ(sites.of_fault.size(), faults.size());
    std::map<std::uint64_t, double> all, right;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      ++all[faults[i].address];
      std::uint32_t site = sites.of_fault[i];
      right[faults[i].address] += site != FaultSites::kNone && sites.sites[site].code_address == faults[i].address;
    }
    for (auto& [address, count] : right) count /= all[address];
    return right;
  }

  std::mt19937_64 random_{1};
  std::string path_;
};

// As a quicksort does it: one place comes from the front, one from the back.
TEST_F(FaultSitesTest, WalksThatTakeTurnsAreToldApart) {
  std::vector<Fault> faults;
  for (std::uint64_t i = 0; i < 8000; ++i) {
    faults.push_back({0x1000, 100'000 + i});
    if (i % 3 != 0) faults.push_back({0x2000, 900'000 - i});
  }
  auto share = found(faults, 8);
  EXPECT_GT(share[0x1000], 0.97);
  EXPECT_GT(share[0x2000], 0.97);
}

// Where nothing goes in order the samples before and after say it, as far as they can.
TEST_F(FaultSitesTest, PhasesAreToldApartWithoutWalks) {
  std::vector<Fault> faults;
  for (std::uint64_t i = 0; i < 20'000; ++i)
    faults.push_back({i / 2000 % 2 == 0 ? 0x1000u : 0x2000u, random_() % 500'000});
  auto share = found(faults, 8);
  EXPECT_GT(share[0x1000], 0.97);
  EXPECT_GT(share[0x2000], 0.97);
}

// A walk takes no faults from a place beside it that has no order.
TEST_F(FaultSitesTest, AWalkLeavesToOthersWhatIsTheirs) {
  std::vector<Fault> faults;
  for (std::uint64_t i = 0; i < 8000; ++i) {
    faults.push_back({0x1000, 100'000 + i});
    faults.push_back({0x2000, 200'000 + random_() % 500'000});
  }
  auto share = found(faults, 8);
  EXPECT_GT(share[0x1000], 0.9);
  EXPECT_GT(share[0x2000], 0.4);  // by chance, half of those without a stack
}

}  // namespace
}  // namespace hinterland::trace
