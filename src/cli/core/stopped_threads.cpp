#include "cli/core/stopped_threads.hpp"

#include <dirent.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <string>

namespace hinterland::cli {
namespace {

constexpr int kNapsMax = 10'000;  // some 5 s

void nap() {
  timespec pause{0, 500'000};
  nanosleep(&pause, nullptr);
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  DIR* directory = opendir(("/proc/" + std::to_string(process) + "/task").c_str());
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory))
    if (entry->d_name[0] != '.') threads.push_back(static_cast<pid_t>(std::stol(entry->d_name)));
  closedir(directory);
  return threads;
}

// Zombies (main, after pthread_exit) and the kernel's own workers (io_uring) cannot be traced, and need not be.
bool is_untraceable(pid_t process, pid_t thread) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text.size()) return true;
  return text.compare(open, 5, "(iou-") == 0 || text[close + 2] == 'Z' || text[close + 2] == 'X';
}

// Waits for the stop that was asked for. False: the thread is gone, or does not stop.
bool wait_for_stop(pid_t thread, int* signal) {
  *signal = 0;
  for (int naps = 0; naps < kNapsMax; ++naps, nap()) {
    int status = 0;
    pid_t who = waitpid(thread, &status, __WALL | WNOHANG);
    if (who < 0 && errno != EINTR) return false;
    if (who != thread) continue;
    if (!WIFSTOPPED(status)) return false;
    if (status >> 16 == 0) *signal = WSTOPSIG(status);  // a signal came first: it is handed on later
    return true;
  }
  return false;
}

bool is_inside_runtime(pid_t thread, const RuntimeView& view, const ProcessMemory& memory) {
  user_regs_struct registers;
  iovec part{&registers, sizeof registers};
  int depth = 0;
  return ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &part) == 0 &&
         memory.read_value(registers.fs_base + static_cast<std::uint64_t>(view.inside_offset), &depth) && depth > 0;
}

Error cannot_trace(pid_t process, int problem) {
  Error error = Error::make(problem, "process %d may not be traced", static_cast<int>(process));
  return error.remedy(
      "is a debugger attached? Else: be its owner or root, and see /proc/sys/kernel/yama/ptrace_scope");
}

std::vector<std::byte> register_set(pid_t thread, int kind) {
  std::vector<std::byte> bytes(16 * 1024);  // AVX-512 and AMX tiles are 11 KiB
  iovec part{bytes.data(), bytes.size()};
  if (ptrace(PTRACE_GETREGSET, thread, kind, &part) != 0) return {};
  bytes.resize(part.iov_len);
  return bytes;
}

}  // namespace

Result<StoppedThreads> StoppedThreads::stop(pid_t process, const RuntimeView& view, const ProcessMemory& memory,
                                            pid_t dying) {
  StoppedThreads threads;
  for (;;) {  // until none is new: one that still runs may start others
    Result<bool> any = threads.stop_new(process, view, memory, dying, When::outside_runtime);
    if (!any) return std::unexpected(any.error());
    if (!*any) return threads;
  }
}

Result<bool> StoppedThreads::stop_new(pid_t process, const RuntimeView& view, const ProcessMemory& memory,
                                      pid_t dying, When when) {
  bool any = false;
  for (pid_t thread : threads_of(process)) {
    bool ours = std::find(view.threads.begin(), view.threads.end(), thread) != view.threads.end();
    bool known = std::any_of(stopped_.begin(), stopped_.end(), [=](const Stopped& s) { return s.thread == thread; });
    if (ours || known || is_untraceable(process, thread)) continue;
    if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) {
      if (errno == ESRCH || is_untraceable(process, thread)) continue;  // just ended
      return std::unexpected(cannot_trace(process, errno));
    }
    stopped_.push_back({thread, 0});
    any = true;
    for (int naps = 0;; ++naps) {
      ptrace(PTRACE_INTERRUPT, thread, 0, 0);
      if (!wait_for_stop(thread, &stopped_.back().signal)) break;
      if (thread == dying || when == When::at_once || naps > kNapsMax) break;
      if (!is_inside_runtime(thread, view, memory)) break;
      ptrace(PTRACE_CONT, thread, 0, stopped_.back().signal);
      nap();
    }
  }
  return any;
}

void StoppedThreads::stop_rest(pid_t process, const ProcessMemory& memory) {
  static_cast<void>(stop_new(process, RuntimeView{}, memory, 0, When::at_once));
}

StoppedThreads::~StoppedThreads() {
  for (const Stopped& one : stopped_) ptrace(PTRACE_DETACH, one.thread, 0, one.signal);
}

std::vector<ThreadState> StoppedThreads::states() const {
  std::vector<ThreadState> states;
  for (const Stopped& one : stopped_) {
    ThreadState state;
    state.id = one.thread;
    iovec part{&state.registers, sizeof state.registers};
    if (ptrace(PTRACE_GETREGSET, one.thread, NT_PRSTATUS, &part) != 0) continue;
    state.floating_point = register_set(one.thread, NT_FPREGSET);
    state.extended = register_set(one.thread, NT_X86_XSTATE);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace hinterland::cli
