#include "common/look.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace apps {
namespace {

[[noreturn]] void fail(const std::string& command, const std::string& why) {
  throw std::runtime_error("--around '" + command + "': " + why);
}

std::vector<char*> environment_without_preloading() {
  std::vector<char*> kept;
  for (char** each = environ; *each != nullptr; ++each)
    if (!std::string_view(*each).starts_with("LD_PRELOAD=")) kept.push_back(*each);
  kept.push_back(nullptr);
  return kept;
}

// The shell, with its standard output at the other end of `pipe_ends`.
pid_t start(const std::string& command, const int* pipe_ends) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  std::string shell = "sh", option = "-c", text = command;
  char* words[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t child = -1;
  int error = posix_spawn(&child, "/bin/sh", &actions, nullptr, words, environment_without_preloading().data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    fail(command, std::string("cannot start a shell: ") + std::strerror(error));
  }
  return child;
}

}  // namespace

std::string output_of(const std::string& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(command, std::string("cannot create a pipe: ") + std::strerror(errno));
  pid_t child = start(command, ends);
  std::string output;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (got > 0) output.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail(command, "it failed");
  return output;
}

}  // namespace apps
