#include "cli/supervise.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/clock.hpp"

namespace hinterland::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

std::vector<char*> as_argv(const Arguments& arguments) {
  std::vector<char*> values;
  for (const std::string& argument : arguments) values.push_back(const_cast<char*>(argument.c_str()));
  values.push_back(nullptr);
  return values;
}

// The child tells through a pipe that closes at exec why exec failed.
[[noreturn]] void start_in_child(const std::string& path, const Arguments& arguments, const sigset_t& mask, int pipe,
                                 int gate) {
  std::vector<char*> values = as_argv(arguments);
  char go = 0;
  ssize_t asked;
  do {
    asked = read(gate, &go, 1);
  } while (asked < 0 && errno == EINTR);
  if (asked != 1) _exit(kNotFound);  // the parent gave up, or died
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execv(path.c_str(), values.data());
  int problem = errno;
  [[maybe_unused]] ssize_t told = write(pipe, &problem, sizeof problem);
  _exit(kNotFound);
}

// The program stopped (Ctrl-Z): so do we, for the shell to see it, and go on with it.
void stop_with(pid_t child) {
  raise(SIGSTOP);
  kill(child, SIGCONT);
}

// True once the child has ended.
bool reap(pid_t child, Outcome& outcome) {
  for (;;) {
    int status = 0;
    pid_t who = wait4(child, &status, WNOHANG | WUNTRACED, &outcome.usage);
    if (who != child) return false;
    if (!WIFSTOPPED(status)) {
      outcome.wait_status = status;
      return true;
    }
    stop_with(child);
  }
}

void wait_and_forward(pid_t child, const sigset_t& signals, Outcome& outcome) {
  while (!reap(child, outcome)) {
    siginfo_t info{};
    int number = sigwaitinfo(&signals, &info);
    // From the terminal (the kernel) the whole foreground group has it already.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(child, number);
  }
}

}  // namespace

Result<Outcome> supervise(const std::string& path, const Arguments& arguments,
                          const std::function<Status(pid_t)>& before_start) {
  sigset_t signals, before;
  sigemptyset(&signals);
  for (int number : kForwarded) sigaddset(&signals, number);
  sigaddset(&signals, SIGCHLD);
  // An inherited SIG_IGN for SIGCHLD would let the child vanish without its status.
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &signals, &before);
  // They stay blocked here, also between programs. A second program gets the mask that we were given, not this one.
  static const sigset_t given = before;
  int pipe[2], gate[2];
  if (pipe2(pipe, O_CLOEXEC) < 0 || pipe2(gate, O_CLOEXEC) < 0) return std::unexpected(Error::make(errno, "a pipe"));
  Outcome outcome;
  std::uint64_t start_ns = now_ns();
  // A limit on files is meant for the program: a report or trace that it cuts short is an error to say, not our end.
  static const auto given_for_files = signal(SIGXFSZ, SIG_IGN);
  pid_t child = fork();
  if (child < 0) return std::unexpected(Error::make(errno, "no further process can be started"));
  if (child == 0) {
    close(gate[1]);
    signal(SIGXFSZ, given_for_files);
    start_in_child(path, arguments, given, pipe[1], gate[0]);
  }
  close(pipe[1]);
  close(gate[0]);
  Status ready;
  if (before_start) ready = before_start(child);
  if (ready) {
    [[maybe_unused]] ssize_t told_to_go = write(gate[1], "", 1);
  }
  close(gate[1]);
  int problem = 0;
  ssize_t told;
  do {
    told = read(pipe[0], &problem, sizeof problem);
  } while (told < 0 && errno == EINTR);
  close(pipe[0]);
  wait_and_forward(child, signals, outcome);
  outcome.wall_ns = now_ns() - start_ns;
  if (!ready) return std::unexpected(ready.error());
  if (told == sizeof problem) return std::unexpected(Error::make(problem, "%s cannot be started", path.c_str()));
  return outcome;
}

void end_like(const Outcome& outcome) {
  if (!WIFSIGNALED(outcome.wait_status)) std::exit(WEXITSTATUS(outcome.wait_status));
  int number = WTERMSIG(outcome.wait_status);
  prctl(PR_SET_DUMPABLE, 0);  // the program's core says it all
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  std::exit(128 + number);
}

Error become(const std::string& path, const Arguments& arguments) {
  std::vector<char*> values = as_argv(arguments);
  execv(path.c_str(), values.data());
  return Error::make(errno, "%s cannot be started", path.c_str());
}

}  // namespace hinterland::cli
