#include "server/confine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HL_UNDER_SANITIZER 1
#else
#define HL_UNDER_SANITIZER 0
#endif

namespace hinterland {
namespace {

// What `work` gives in a child that confined itself first; -1 when the child died.
template <typename Work>
int confined(Work work) {
  pid_t child = ::fork();
  if (child == 0) {
    if (!confine()) ::_exit(100);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int error_of(long result) { return result < 0 ? errno : 0; }

class Confine : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef HINTERLAND_COVERAGE
    GTEST_SKIP() << "a build that counts lines has no filter: it has to write its counts";
#endif
    if (HL_UNDER_SANITIZER) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  }
};

TEST_F(Confine, RefusesWhatServingDoesNotTake) {
  EXPECT_EQ(confined([] { return error_of(::open("/etc/passwd", O_RDONLY)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::unlink("/nowhere")); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::fork()); }), EPERM);
  EXPECT_EQ(confined([] {
              char* nothing[] = {nullptr};
              return error_of(::execve("/bin/true", nothing, nothing));
            }),
            EPERM);
  EXPECT_EQ(confined([] { return error_of(::syscall(SYS_ptrace, 0, 0, 0, 0)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::kill(1, 0)); }), EPERM);
}

TEST_F(Confine, AThreadMakesWayForOthersAndNobodyElse) {
  EXPECT_EQ(confined([] { return error_of(::setpriority(PRIO_PROCESS, 0, 19)); }), 0);
  EXPECT_EQ(confined([] { return error_of(::setpriority(PRIO_PROCESS, static_cast<id_t>(::getppid()), 19)); }),
            EPERM);
  EXPECT_EQ(confined([] { return error_of(::setpriority(PRIO_PGRP, 0, 19)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::setpriority(PRIO_USER, 0, 19)); }), EPERM);
}

TEST_F(Confine, MemoryIsNeverExecutable) {
  auto map = [](int protection) { return ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  EXPECT_EQ(confined([&] { return map(PROT_READ | PROT_EXEC) == MAP_FAILED ? errno : 0; }), EPERM);
  EXPECT_EQ(confined([&] { return error_of(::mprotect(map(PROT_READ), 4096, PROT_READ | PROT_EXEC)); }), EPERM);
  EXPECT_EQ(confined([&] { return error_of(::mprotect(map(PROT_READ), 4096, PROT_READ | PROT_WRITE)); }), 0);
}

TEST_F(Confine, ThreadsAndMemoryGoOn) {
  EXPECT_EQ(confined([] {
              std::vector<char> block(64 << 20, 'x');
              int found = 0;
              std::thread([&] { found = block[block.size() / 2] == 'x' ? 7 : 0; }).join();
              return found;
            }),
            7);
}

// Only root has any to lose; for others this holds anyway.
TEST_F(Confine, NoCapabilities) {
  int confined_pipe[2], over_pipe[2];
  ASSERT_TRUE(::pipe(confined_pipe) == 0 && ::pipe(over_pipe) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::close(over_pipe[1]);
    static_cast<void>(confine());
    char byte = 0;
    static_cast<void>(!::write(confined_pipe[1], &byte, 1));
    static_cast<void>(!::read(over_pipe[0], &byte, 1));
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(confined_pipe[0], &byte, 1), 1);
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  int found = 0;
  for (std::string name, value; status >> name;) {
    if (name != "CapInh:" && name != "CapPrm:" && name != "CapEff:" && name != "CapAmb:" && name != "CapBnd:")
      continue;
    status >> value;
    if (name == "CapBnd:" && ::geteuid() != 0) continue;  // to lower it takes a capability
    EXPECT_EQ(value, "0000000000000000") << name;
    ++found;
  }
  EXPECT_GE(found, 4);
  ::close(over_pipe[1]);
  ::waitpid(child, nullptr, 0);
  for (int fd : {confined_pipe[0], confined_pipe[1], over_pipe[0]}) ::close(fd);
}

TEST_F(Confine, NoPrivilegesAndNoCore) {
  EXPECT_EQ(confined([] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) < 0 ? errno : 0; }), EPERM)
      << "asking is refused as well";
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    static_cast<void>(confine());
    ::abort();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  EXPECT_FALSE(WCOREDUMP(status));
}

}  // namespace
}  // namespace hinterland
