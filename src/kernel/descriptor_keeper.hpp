// Second copies of descriptors, out of the program's reach: a thread with a descriptor table of its own holds them.
//
// A program can close any descriptor by a system call that we do not see. When the last copy of a userfaultfd is
// closed, the kernel forgets all that was registered with it, and far pages would read as zeros (I4). While the
// thread lives there is another copy; who finds its own gone takes it back from there.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hinterland {

class DescriptorKeeper {
 public:
  // The thread's body: copies the table of the calling thread (which until now is the process's), closes all but
  // `kept` in its copy, and sleeps for ever. It opens nothing. Returns -errno where it cannot have a table of its own
  // (Linux before 5.9, seccomp): then it is no keeper.
  int hold(std::span<const int> kept);
  // Blocks until the thread that calls hold() has what it keeps, or cannot have it.
  void wait_until_settled();
  // A new descriptor, 900 or above, for what `kept` was when hold() began: under the same number, if that is free and
  // nothing else of the runtime's had it. `lost` is the number that its owner had for it until now.
  // -errno: there is no keeper, or the kernel has no descriptors of threads (before 6.9). Any thread; does not block.
  // Again, when the program closes what is on its way, or another file gets its number there.
  int take_back(int kept, int lost) const;
  // In a forked child the thread is not there.
  void after_fork_in_child();

 private:
  static constexpr std::size_t kMax = 32;

  void settle(pid_t thread);
  static int take_once(pid_t holder, int kept);

  std::atomic<pid_t> thread_{0};           // 0: nobody holds anything
  std::atomic<std::uint32_t> settled_{0};  // futex
};

}  // namespace hinterland
