// The one contract through which we talk to Linux about the program's memory. `real_kernel()` is Linux;
// `FakeKernel` (fake_kernel.hpp) is a model of it for tests of the page machine.
//
// Every call that can fail returns 0 (or a count) or -errno. None allocates, none throws, all are thread-safe.
// Addresses and lengths are multiples of kPageSize.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/units.hpp"

namespace hinterland {

// What this kernel and these privileges allow. docs/architecture.md says what for.
struct KernelFeatures {
  bool kernel_faults = false;     // faults taken inside system calls are delivered, not only those of user code
  bool write_protect = false;     // UFFD write-protect on anonymous memory (5.7)
  bool exact_address = false;     // 5.18
  bool thread_id = false;         // messages name the faulting thread (4.14)
  bool poison = false;            // UFFDIO_POISON (6.6)
  bool move = false;              // UFFDIO_MOVE (6.8)
  bool vectored_discard = false;  // process_madvise(DONTNEED) on oneself (6.13)
  bool look_for_faults = false;   // look_for_faults() (6.10)
};

// How a thread that touches an absent or protected page gets it.
enum class FaultDelivery : std::uint8_t {
  messages,  // it sleeps, and the descriptor has a message for whoever serves faults
  signals,   // it gets SIGBUS and serves the fault itself; inside system calls there is EFAULT instead
};

struct FaultMessage {
  std::uintptr_t address;   // page-aligned
  std::uint32_t thread_id;  // 0 when unknown
  bool write;               // the access was a write
  bool write_protect;       // the page is there, but protected
};

// One of the kernel's mappings, from an address in it to its end.
struct MappingAt {
  // PROT_*, or -errno: there is none, or the kernel does not say (before Linux 6.11, or to a program that has become
  // another user).
  int protection;
  std::uintptr_t end;
};

// What present_runs() found.
struct PresentRuns {
  int error;                    // 0 or -errno
  std::size_t count;            // of runs; two of them may touch
  std::uintptr_t looked_until;  // the end of the range, or where there was no room for the next run
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Before open(); holds for every open() after it, too. Nothing said: messages.
  virtual void deliver_faults_by(FaultDelivery) {}
  // Opens the fault descriptor, after probing what it can do. Again in a forked child: the old one is the parent's.
  virtual Status open() = 0;
  virtual const KernelFeatures& features() const = 0;
  // Where messages are read from (for poll), or -1.
  virtual int fault_descriptor() const = 0;
  // The body of a thread that keeps faults alive whatever the program closes (I4): for as long as the thread lives,
  // the fault descriptor has a copy that the program cannot reach, and the calls below take it back when theirs is
  // gone. Returns -errno, at once, where that cannot be.
  virtual int keep_descriptors() = 0;
  // For who started that thread: blocks until it has what it keeps, or cannot have it.
  virtual void wait_until_kept() = 0;

  // Faults in [address, length) are delivered from now on; pages already there stay. The kernel's core files leave
  // the range out from now on.
  virtual int register_range(std::uintptr_t address, std::size_t length) = 0;
  virtual int unregister_range(std::uintptr_t address, std::size_t length) = 0;

  // Reads waiting messages (from one thread at a time); blocks while there are none if `block`. Count, 0 when none,
  // or -errno (-EINTR included).
  virtual int read_faults(std::span<FaultMessage> messages, bool block) = 0;
  // The same without blocking, by any number of threads, also while one blocks in read_faults().
  virtual int look_for_faults(std::span<FaultMessage> messages) = 0;

  // Maps fresh pages filled from `source` (any memory), at once and atomically, and wakes who waits for them.
  // protect: clean, so that the first write faults. Returns bytes done (maybe short), -EEXIST when the first page
  // is there already, -ENOENT when no registered mapping is there.
  virtual std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) = 0;
  // The same, but wakes nobody: for threads that bring pages in before they touch them. Who waits for one all the
  // same is woken by whoever lets go of the page, or by the handler that reads the message and finds it there.
  virtual std::int64_t copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) = 0;
  // There will be many of those, by several threads. Any thread; only the first call does something.
  virtual void expect_unwaited_copies() = 0;
  // The same with the shared zero page (read faults on untouched memory; a write then needs no message).
  virtual std::int64_t zero(std::uintptr_t target, std::size_t length) = 0;
  // Moves pages that are present and exclusive from `source` to the empty registered range `target`, and wakes who
  // waits for them. Atomic per page against the program's writes. Bytes done, -EBUSY (shared or pinned), -ENOENT,
  // -EINVAL (protection differs). Protection state is not carried over: the pages arrive writable.
  virtual std::int64_t move(std::uintptr_t target, std::uintptr_t source, std::size_t length) = 0;
  virtual int write_protect(std::uintptr_t address, std::size_t length, bool protect) = 0;
  // Lets those who wait for a page in the range look again.
  virtual int wake(std::uintptr_t address, std::size_t length) = 0;
  // Each wake-up looks at every thread that waits for any page. From now on what this thread does to pages of the
  // range wakes nobody (as far as the kernel can leave it out), until wake_together(), which wakes all who wait for
  // a page of the range that it is given. The two ranges need not be the same; the caller wakes the rest later.
  virtual void wake_later(std::uintptr_t, std::size_t) {}
  virtual void wake_together(std::uintptr_t, std::size_t) {}
  // When the calling thread lets who waits for the page at this address go on, for the first time from now on:
  // CLOCK_MONOTONIC, just before the call that does it, for whoever is woken may push the caller aside at once. 0: it
  // has not done that yet, or cannot tell.
  virtual void watch_for_wake(std::uintptr_t) {}
  virtual std::uint64_t woken_ns() const { return 0; }
  // Touching the pages raises SIGBUS from now on. Falls back to a mapping without a file behind it.
  virtual int poison(std::uintptr_t address, std::size_t length) = 0;

  // Drops the pages of many ranges with as few flushes as possible. Ranges are ascending and disjoint.
  virtual int discard(std::span<const iovec> ranges) = 0;

  // Bit i of `bits`: page i of the range is mapped (or swapped) now. Cheap for one page that is there; else it costs
  // opening a /proc file: not for hot paths.
  virtual int present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) = 0;
  // Which runs of pages of a range are mapped (or swapped) now, in order, as many as fit into `runs`. Costs what is
  // there, however long the range is; before Linux 6.7 as much as present() for the whole range.
  virtual PresentRuns present_runs(std::uintptr_t start, std::uintptr_t end, std::span<iovec> runs);
  virtual MappingAt mapping_at(std::uintptr_t) { return {-ENOSYS, 0}; }
  // Makes a present page that may be read exclusive to this process again, whether it may be written or not: as far
  // as that can be done. A page that the kernel has pinned is exclusive.
  virtual void make_exclusive_for_reading(std::uintptr_t) {}
  // Makes a present page exclusive to this process again (after a fork) without changing its bytes. -errno when it
  // may not be written.
  virtual int make_exclusive(std::uintptr_t address) = 0;
  // Reads pages whatever their protection. Bytes done or -errno.
  virtual std::int64_t read_memory(void* target, std::uintptr_t source, std::size_t length) = 0;

  // Anonymous bytes resident now (RssAnon).
  virtual std::uint64_t resident_anonymous_bytes() = 0;
};

// Linux. One object a process; `open()` must succeed before the rest is used.
Kernel& real_kernel();

}  // namespace hinterland
