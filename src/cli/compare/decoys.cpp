#include "cli/compare/decoys.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <latch>

namespace hinterland::cli {
namespace {

constexpr unsigned kAtOnce = 8;  // a kill takes the kernel a moment, and a new one some milliseconds

// By system calls alone: safe in the child of a process with threads.
bool write_whole(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const bool done = write(file, text, static_cast<std::size_t>(length)) == length;
  const int problem = errno;
  close(file);
  errno = problem;
  return done;
}

// Says through the pipe that it is ready, and waits to be killed. It keeps no descriptor of ours open: somebody waits
// for the end of one. It ends when the thread that started it does.
[[noreturn]] void be_one(int pipe) {
  setsid();  // an interrupt at the terminal is for the program
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "hl-decoy");
  dup2(pipe, STDIN_FILENO);
  close_range(STDOUT_FILENO, ~0u, 0);
  const bool preferred = write_whole("/proc/self/oom_score_adj", "1000");
  if (!preferred || write(STDIN_FILENO, "", 1) != 1) _exit(1);
  close(STDIN_FILENO);
  for (;;) pause();
}

bool said_ready(int pipe) {
  char word = 0;
  ssize_t length;
  do {
    length = read(pipe, &word, 1);
  } while (length < 0 && errno == EINTR);
  return length == 1;
}

}  // namespace

Result<std::unique_ptr<Decoys>> Decoys::start(const std::string& procs, unsigned most) {
  std::unique_ptr<Decoys> decoys(new Decoys(procs, most));
  if (Status begun = decoys->begin(); !begun) return std::unexpected(begun.error());
  return decoys;
}

Status Decoys::begin() {
  end_ = eventfd(0, EFD_CLOEXEC);
  if (end_ < 0) return std::unexpected(Error::make(errno, "an eventfd"));
  std::latch first_are_there(1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, &first_are_there] {
    while (started_well_ && there_.size() < kAtOnce && started_ < most_) started_well_ = add();
    first_are_there.count_down();
    keep();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  first_are_there.wait();
  return started_well_;
}

Decoys::~Decoys() {
  if (thread_.joinable()) {
    const std::uint64_t asked = 1;
    [[maybe_unused]] const ssize_t told = write(end_, &asked, sizeof asked);
    thread_.join();
  }
  if (end_ >= 0) close(end_);
}

void Decoys::keep() {
  while (!end_is_asked_for()) replace_the_killed();
  end_all();
}

Status Decoys::add() {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return std::unexpected(Error::make(errno, "a pipe"));
  const pid_t process = fork();
  if (process == 0) be_one(pipe[1]);
  const int problem = errno;
  close(pipe[1]);
  const bool ready = process > 0 && said_ready(pipe[0]);
  close(pipe[0]);
  if (process < 0) return std::unexpected(Error::make(problem, "no further process can be started"));
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  // What it has by now is counted where we are, not in the group.
  const std::string line = std::to_string(process) + "\n";
  const bool entered = ready && descriptor >= 0 && write_whole(procs_.c_str(), line.c_str());
  if (entered) {
    there_.push_back({process, descriptor});
    ++started_;
    return {};
  }
  const int refused = errno;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  if (descriptor >= 0) close(descriptor);
  return std::unexpected(Error::make(refused, "a process cannot enter the memory cgroup by %s", procs_.c_str()));
}

bool Decoys::end_is_asked_for() {
  std::vector<pollfd> all = {{end_, POLLIN, 0}};
  for (const One& one : there_) all.push_back({one.descriptor, POLLIN, 0});
  while (poll(all.data(), all.size(), -1) < 0 && errno == EINTR) {
  }
  return all[0].revents != 0;
}

void Decoys::replace_the_killed() {
  for (std::size_t i = 0; i < there_.size();) {
    if (waitpid(there_[i].process, nullptr, WNOHANG) != there_[i].process) {
      ++i;
      continue;
    }
    close(there_[i].descriptor);
    there_.erase(there_.begin() + static_cast<std::ptrdiff_t>(i));
    killed_.fetch_add(1, std::memory_order_relaxed);
    // One that was killed before it had entered, or cannot be started: the others remain.
    if (started_ < most_) static_cast<void>(add());
  }
}

void Decoys::end_all() {
  for (const One& one : there_) {
    kill(one.process, SIGKILL);
    waitpid(one.process, nullptr, 0);
    close(one.descriptor);
  }
  there_.clear();
}

}  // namespace hinterland::cli
