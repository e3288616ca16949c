// Processes in a memory cgroup for the kernel to kill in the place of the program there. Linux 6.18 gives up
// reclaiming in a small cgroup although swap is free: it looks 16 times, finds pages in use each time, and kills a
// process. Afterwards it looks again, and finds pages. So some processes are always there that it prefers to kill;
// they do nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace hinterland::cli {

class Decoys {
 public:
  static constexpr unsigned kMost = 2000;  // a program that needs more has less memory than it cannot do without

  // They enter the group whose cgroup.procs that is; those that are killed are replaced, until `most` were there.
  // Blocks until the first have entered, some milliseconds. Starts a thread, which has all signals blocked.
  static Result<std::unique_ptr<Decoys>> start(const std::string& procs, unsigned most = kMost);
  ~Decoys();  // ends them; blocks until they are gone
  Decoys(const Decoys&) = delete;
  Decoys& operator=(const Decoys&) = delete;

  unsigned killed() const { return killed_.load(std::memory_order_relaxed); }  // a figure, which orders nothing

 private:
  struct One {
    pid_t process;
    int descriptor;  // a pidfd: readable once it has ended
  };

  Decoys(const std::string& procs, unsigned most) : procs_(procs), most_(most) {}
  Status begin();
  void keep();  // the thread: until the end is asked for
  Status add();
  bool end_is_asked_for();  // blocks until that, or until one has ended
  void replace_the_killed();
  void end_all();

  std::string procs_;
  unsigned most_, started_ = 0;
  std::vector<One> there_;  // of the thread
  std::atomic<unsigned> killed_ = 0;
  int end_ = -1;  // an eventfd
  Status started_well_;
  std::thread thread_;
};

}  // namespace hinterland::cli
