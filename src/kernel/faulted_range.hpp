// A range of addresses at a place of the caller's choice, with a userfaultfd of its own: faults in it are read by one
// thread of the caller's, apart from those of paged memory.
//
// Of the range, what was opened may be touched; a page of it has a frame from bring() to take(). The rest raises
// SIGSEGV. Forked children do not have the range (a page of it would read as zeros there), and core files leave it
// out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "kernel/descriptor_keeper.hpp"

namespace hinterland {

class FaultedRange {
 public:
  // Reserves the addresses: [address, address + length), multiples of kPageSize. Fails where something is there
  // already, where faults of system calls may not be had, or before Linux 5.7.
  static Result<std::unique_ptr<FaultedRange>> create(std::uintptr_t address, std::size_t length);
  // Ends the range. Nobody is in wait().
  ~FaultedRange();
  FaultedRange(const FaultedRange&) = delete;
  FaultedRange& operator=(const FaultedRange&) = delete;

  // The body of a thread that holds a second copy of the descriptor, out of the program's reach; -errno at once where
  // that cannot be (DescriptorKeeper::hold()). wait_until_kept(): it has it, or cannot.
  int keep_descriptor();
  void wait_until_kept() { keeper_.wait_until_settled(); }

  // From now on these addresses may be touched. 0 or errno. Any thread; once for each.
  int open(std::uintptr_t address, std::size_t length);

  // The page that somebody waits for; 0 after stop(). Blocks. One thread at a time.
  std::uintptr_t wait();
  void stop();

  // Gives the page a frame with these bytes, at once, and wakes who waits for it. 0, EEXIST or another errno. Any
  // thread.
  int bring(std::uintptr_t page, const void* bytes);
  // Whoever touches the page gets SIGBUS from now on, and who waits for it is woken. 0 or errno (before Linux 6.6).
  int poison(std::uintptr_t page);
  void wake(std::uintptr_t page);
  // Takes the frame away, atomically against whoever writes to it; who touches the page from then on waits.
  // Its bytes, valid until the next take(); nullptr where the kernel has no memory. One thread at a time.
  const std::byte* take(std::uintptr_t page);

  // In a forked child, where the range and its threads are not there: reserves it again, with nothing opened.
  Status after_fork_in_child();

 private:
  FaultedRange(std::uintptr_t address, std::size_t length) : address_(address), length_(length) {}
  Status begin();
  template <typename Call>
  int with_descriptor(Call&& call);

  std::uintptr_t address_;
  std::size_t length_;
  std::atomic<int> faults_{-1};  // relaxed: who finds an old number takes it back
  int kept_ = -1;                // its number in the keeper's table
  int stop_ = -1;
  std::atomic<bool> stopping_{false};
  std::uintptr_t taken_ = 0;  // where taken frames go
  DescriptorKeeper keeper_;
};

}  // namespace hinterland
