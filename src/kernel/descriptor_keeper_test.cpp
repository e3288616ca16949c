#include "kernel/descriptor_keeper.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/raw_call.hpp"

namespace hinterland {
namespace {

constexpr int kSkipped = 77;

// In a process of its own: the keeper's thread never ends. "" or what is wrong.
const char* keep_and_take_back() {
  int kept[2], other[2];
  if (pipe(kept) != 0 || pipe(other) != 0) return "no pipe";
  static DescriptorKeeper keeper;
  if (keeper.take_back(kept[0], kept[0]) >= 0) return "taken back where nobody keeps anything";
  const int both[] = {kept[1], -1, kept[0]};
  std::thread thread([&] { keeper.hold(both); });
  keeper.wait_until_settled();
  thread.detach();
  // Nobody else has the other pipe open: the keeper must not, or readers of the program would wait for ever.
  close(other[1]);
  char byte = 0;
  if (read(other[0], &byte, 1) != 0) return "the keeper holds what it was not given";
  if (raw::failed(raw::call(SYS_close_range, 3, ~0u, 0))) return "nothing can be closed";
  int writer = keeper.take_back(kept[1], kept[1]), reader = keeper.take_back(kept[0], kept[0]);
  if (writer == -EINVAL) return nullptr;  // before Linux 6.9
  if (writer < 900 || reader < 900) return "not taken back";
  if ((fcntl(reader, F_GETFD) & FD_CLOEXEC) == 0) return "open beyond exec";
  if (write(writer, "x", 1) != 1 || read(reader, &byte, 1) != 1 || byte != 'x') return "another pipe than before";
  if (keeper.take_back(other[0], other[0]) >= 0) return "taken back though it was not given";
  return "";
}

TEST(DescriptorKeeperTest, WhatTheProgramClosedIsTakenBack) {
  pid_t child = fork();
  if (child == 0) {
    const char* wrong = keep_and_take_back();
    if (wrong == nullptr) _exit(kSkipped);
    static_cast<void>(!write(STDERR_FILENO, wrong, std::char_traits<char>::length(wrong)));
    _exit(*wrong == '\0' ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped)
    GTEST_SKIP() << "this kernel has no descriptors of threads";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hinterland
