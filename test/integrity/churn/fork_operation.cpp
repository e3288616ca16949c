// fork without exec: the child sees all of the parent's memory as it was, changes its own, and both stay right.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "worker.hpp"

namespace churn {

namespace {
constexpr int kChildOperations = 300;
}  // namespace

void Worker::fork_child() {
  reap(children_.size() - 1);
  // Quiet: no other thread is at work, and the child can verify everybody's memory. Else faults of others are in
  // flight, and it verifies its own.
  bool quiet = generation_ > 0 ? false : random_.one_in(2);
  if (quiet) gate_.enter_alone();
  pid_t child = fork();
  if (child == 0) live_as_child(quiet);
  if (quiet) gate_.leave();
  if (child < 0) fail(all_, mine_, "fork");
  ++forks_;
  children_[child_count_++] = child;
}

void Worker::live_as_child(bool quiet) {
  expect_progress();  // a child that hangs is a failure that its parent reports
  ++generation_;
  child_count_ = 0;
  close_scratch();  // the parent's
  open_scratch();
  random_ = Random(random_.next() ^ static_cast<std::uint64_t>(generation_));
  if (quiet) {
    for (ThreadShadow& each : all_.threads) verify_thread(all_, each, "in a forked child");
    verify_counters(all_, mine_, "in a forked child");
  } else {
    verify_thread(all_, mine_, "in a forked child, others at work");
  }
  chances_.forks_per_10000 = 30;
  for (int i = 0; i < kChildOperations; ++i) {
    note_progress();
    step();
  }
  reap(0);
  verify_thread(all_, mine_, "at the end of a forked child");
  if (quiet) verify_counters(all_, mine_, "at the end of a forked child");
  _exit(0);
}

void Worker::reap(std::size_t children_left) {
  while (child_count_ > children_left) {
    int status = 0;
    pid_t child = children_[0];
    alarm(0);  // it has one of its own
    if (waitpid(child, &status, 0) != child) fail(all_, mine_, "waitpid");
    note_progress();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail(all_, mine_, "child %d ended with status 0x%x", child, static_cast<unsigned>(status));
    std::move(children_.begin() + 1, children_.end(), children_.begin());
    --child_count_;
  }
}

}  // namespace churn
