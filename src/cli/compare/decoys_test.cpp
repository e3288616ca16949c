#include "cli/compare/decoys.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace hinterland::cli {
namespace {

// In the place of a group's: a file, which has the process that entered last.
std::string procs_file() {
  std::string path = ::testing::TempDir() + "hl_decoys_" + std::to_string(getpid());
  std::ofstream(path) << "";
  return path;
}
pid_t last_in(const std::string& path) {
  std::ifstream file(path);
  pid_t process = 0;
  file >> process;
  return process;
}
bool is_there(pid_t process) { return kill(process, 0) == 0; }
template <typename Condition>
void wait_for(Condition&& holds) {
  while (!holds()) std::this_thread::yield();
}

TEST(Decoys, AreWhatTheKernelKillsFirst) {
  const std::string procs = procs_file();
  Result<std::unique_ptr<Decoys>> decoys = Decoys::start(procs);
  ASSERT_TRUE(decoys) << decoys.error().what();
  int preference = 0;
  std::ifstream("/proc/" + std::to_string(last_in(procs)) + "/oom_score_adj") >> preference;
  EXPECT_EQ(preference, 1000);
  EXPECT_EQ((*decoys)->killed(), 0u);
  unlink(procs.c_str());
}

TEST(Decoys, OneThatIsKilledIsReplaced) {
  const std::string procs = procs_file();
  Result<std::unique_ptr<Decoys>> decoys = Decoys::start(procs);
  ASSERT_TRUE(decoys) << decoys.error().what();
  const pid_t first = last_in(procs);
  kill(first, SIGKILL);
  wait_for([&] { return (*decoys)->killed() == 1; });
  wait_for([&] { return last_in(procs) != 0 && last_in(procs) != first; });
  const pid_t second = last_in(procs);
  EXPECT_TRUE(is_there(second));
  decoys->reset();
  EXPECT_FALSE(is_there(first));
  EXPECT_FALSE(is_there(second));
  unlink(procs.c_str());
}

// A program that has less memory than it cannot do without is killed in the end.
TEST(Decoys, ThereAreNoMoreThanAsked) {
  const std::string procs = procs_file();
  constexpr unsigned kMost = 3;
  Result<std::unique_ptr<Decoys>> decoys = Decoys::start(procs, kMost);
  ASSERT_TRUE(decoys) << decoys.error().what();
  const pid_t last = last_in(procs);
  kill(last, SIGKILL);
  wait_for([&] { return (*decoys)->killed() == 1; });
  decoys->reset();
  EXPECT_EQ(last_in(procs), last) << "one more came";
  unlink(procs.c_str());
}

TEST(Decoys, AGroupThatTakesNoneIsAnError) {
  Result<std::unique_ptr<Decoys>> decoys = Decoys::start("/nowhere/cgroup.procs");
  ASSERT_FALSE(decoys);
  EXPECT_NE(std::string(decoys.error().what()).find("/nowhere/cgroup.procs"), std::string::npos);
}

}  // namespace
}  // namespace hinterland::cli
