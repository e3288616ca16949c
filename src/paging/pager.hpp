// The pager: far memory for one process. Owns the window, its regions, the page words, the budget, the threads.
//
// Calls below are what the interposers (src/preload) and the hint layer use. They return what the system call of the
// same name would, failure as -errno. Thread-safe. They may block for reclaim or for a page that is on its way, never
// for long; none may be called from a signal handler except where it says so. Callers hold InsideRuntime.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/parts.hpp"
#include "far/device.hpp"
#include "hinterland/operator.h"
#include "hinterland/policy.h"
#include "kernel/kernel.hpp"
#include "paging/page/fault_observer.hpp"
#include "paging/page/ledger.hpp"
#include "paging/page/mapped_as.hpp"
#include "paging/serve/fault_outcome.hpp"
#include "paging/serve/hint.hpp"

namespace hinterland {

struct PagerOptions {
  std::string far_url;                         // the device's, as the user wrote it; "" for what it says itself
  far::DeviceSettings device_settings;         // for the devices of regions
  std::uint64_t budget_bytes = 0;              // local memory
  std::uint64_t window_bytes = 0;              // address space reserved; halved until it can be had
  Addresses addresses = Addresses::automatic;  // whether mappings outside of the window may be far
  bool manage_at_once = false;                 // false: pages stay with the kernel until the budget is nearly used
  std::uint32_t read_ahead_pages_max = 64;     // 0: none
  const hl_policy_ops* policy = nullptr;
  const char* policy_settings = "";                // must outlive the process
  const hl_policy_ops* policy_instead = nullptr;   // the policy is a plug-in; this one takes over when it is wrong
  FaultDelivery faults = FaultDelivery::messages;  // as the kernel was told; signals: paging begins at once
  bool take_by_move = true;  // dirty pages: take with MOVE if the kernel has it, else protect and copy
  Parts parts;
  Reclaim reclaim = Reclaim::adaptive;
  // Called once, by a thread of the runtime, when paging begins: freed memory should now be given back promptly.
  void (*on_managed)() = nullptr;
  FaultObserver* observer = nullptr;  // told of each fault; lives as long as the process
  ObserveOnRequest observe_on_request = nullptr;
};

// A region that the program created (include/hinterland/region.h).
struct RegionOptions {
  const hl_policy_ops* policy = nullptr;  // nullptr: the process's; must outlive the process
  std::uint64_t share_bytes = 0;          // of the budget: within it pages leave last, beyond it first
  std::int32_t read_ahead_pages = -1;     // below zero: the process's setting
  bool common_share = false;              // instead of a share of its own: pages leave as the process's do
  std::uint32_t device = 0;               // as Pager::open_device() said; 0: the process's
  const char* tag = "";                   // for its policy
};

class Pager {
 public:
  struct Impl;  // the parts, private to this room (pager_impl.hpp)
  static constexpr std::uint64_t kMinimumBudgetBytes = 4 * kMiB;

  // Reserves the window and starts the runtime's threads. One a process; lives until the process ends.
  static Result<Pager*> start(const PagerOptions& options, Kernel& kernel, std::unique_ptr<far::Device> device);
  static Pager* current();  // nullptr before start()

  // Whether an address is far memory's: in the window, or in one of our mappings outside. O(1), callable anywhere.
  bool contains(std::uintptr_t address) const { return in_window(address) || holds_outside(address); }
  // O(1), and a byte a GiB of the range.
  bool overlaps(std::uintptr_t address, std::size_t length) const {
    return overlaps_window(address, length) || overlaps_outside(address, length);
  }
  bool in_window(std::uintptr_t address) const { return address - base_ < bytes_; }
  bool overlaps_window(std::uintptr_t address, std::size_t length) const {
    return address < base_ + bytes_ && base_ < address + length;
  }
  // The end of the piece of [address, end) in which all addresses are in the window, or all in our mappings outside,
  // or all not ours. Calls below take ranges of one piece. Callable anywhere.
  std::uintptr_t end_of_piece(std::uintptr_t address, std::uintptr_t end) const;

  // The window itself, for ranges that lie only partly in it.
  std::uintptr_t window_base() const { return base_; }
  std::size_t window_bytes() const { return bytes_; }
  // What the hint map covers: all user addresses, or the window.
  std::uintptr_t places_base() const;
  std::size_t places_bytes() const;
  std::size_t outside_bytes() const;  // mapped outside of the window
  // Mappings outside of the window can be far, so that the program may have the addresses that it chooses.
  bool covers_all_addresses() const;

  // --- mappings: private anonymous memory ---------------------------------------------------------------------
  // A new mapping, `alignment` a power of two >= kPageSize. `flags` are extra mmap flags to keep (MAP_NORESERVE,
  // ...). Address, or -ENOMEM when the kernel has no room, or the window not `leave` bytes more. `as`: for policies.
  std::intptr_t map(std::size_t length, std::size_t alignment, int protection, int flags = 0, std::size_t leave = 0,
                    MappedAs as = {});
  // Whether memory, swap and far devices together can hold so much. Where they cannot, a mapping without
  // MAP_NORESERVE is the kernel's to grant, which mostly refuses it (vm.overcommit_memory).
  bool has_room_for(std::size_t bytes) const;
  // At a given address, which lies wholly in the window or in our mappings outside: replaces what is there, as
  // MAP_FIXED does. no_replace: -EEXIST when something is there.
  std::intptr_t map_at(std::uintptr_t address, std::size_t length, int protection, int flags, bool no_replace);
  // Outside of the window: puts a fresh mapping of ours in the place of what is there, which is not ours, and may be
  // replaced. The address; or -ENOSPC (it cannot be far) or what the kernel says, and what is there is the program's
  // still, or a fresh mapping that is not ours.
  std::intptr_t take_in(std::uintptr_t address, std::size_t length, int protection, int flags);
  // A mapping that is not ours to page (file, shared) was put or is about to be put at an address in the window:
  // forgets the pages there. In the window, the range counts as used until unmap(). Outside, it is not ours any more:
  // the caller has a mapping without access there, to be replaced or unmapped.
  int surrender(std::uintptr_t address, std::size_t length);
  int unmap(std::uintptr_t address, std::size_t length);
  int protect(std::uintptr_t address, std::size_t length, int protection);
  // mremap on a range that lies in the window. `flags` as mremap's; new_address only with MREMAP_FIXED.
  std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                      std::uintptr_t new_address);
  // mremap of a far range to a fixed address outside of the window (flags with MREMAP_FIXED): what was far becomes
  // ordinary local memory, and what was far at the target is gone. came(address, length) is told of each such piece.
  // What is refused because of the source changes nothing.
  std::intptr_t move_out(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                         std::uintptr_t new_address, void (*came)(std::uintptr_t, std::size_t));
  // madvise on a range in the window: DONTNEED, FREE and the like act on far pages too; others go to the kernel.
  int advise(std::uintptr_t address, std::size_t length, int advice);
  // mincore: far pages count as resident (they are the program's memory).
  int core(std::uintptr_t address, std::size_t length, unsigned char* vector);
  // msync.
  int sync(std::uintptr_t address, std::size_t length, int flags);
  // mlock2 and munlock, page-aligned: locked pages come in and stay local, whatever the budget.
  int lock(std::uintptr_t address, std::size_t length, int flags);
  int unlock(std::uintptr_t address, std::size_t length);
  // mlockall and munlockall. New mappings are locked on fault: the heap's extents are larger than what is used of
  // them.
  int lock_all(int flags);
  int unlock_all();

  // --- regions ------------------------------------------------------------------------------------------------
  // The far device of this URL, for RegionOptions: the number of one that the process has, or one opened now, which
  // stays until the process ends. Or why there is none: as far::open_device(), or ENOSPC (far::kDevicesMax). All
  // paging stands still while it is connected; who maps memory waits for it to be opened.
  Result<std::uint32_t> open_device(const std::string& url);
  // Fresh memory, zeros, with a pool of its own. Address, or -ENOMEM, -EDQUOT (all shares together would be more than
  // half of the budget), -ENOSPC (too many regions), -EINVAL (a policy for another interface). Rounded up to 64 KiB.
  std::intptr_t create_region(std::size_t length, const RegionOptions& options, int* pool);
  // With what create_region() was given and gave. Its pages are gone, local and far; who waits for one gets SIGSEGV,
  // as with munmap.
  int destroy_region(std::uintptr_t address, std::size_t length, const RegionOptions& options, int pool);

  // --- heap extents -------------------------------------------------------------------------------------------
  // The contents are no longer needed. Local pages stay where they are until memory is short, and then go without
  // being written; far pages are given back at once. Until commit() the contents are undefined.
  void decommit(std::uintptr_t address, std::size_t length);
  // Of a block that is being freed: what the program had asked for its pages (protection, advice, locks, a mapping of
  // its own in their place) ends, and their contents with it, as natively, where large blocks are unmapped.
  // Page-aligned.
  void make_plain(std::uintptr_t address, std::size_t length);
  // The range is used again, and reads as zeros.
  void commit(std::uintptr_t address, std::size_t length);
  // The range is used again, and holds anything until it is written: what was there when it was freed, or zeros. Its
  // pages are new to the policy (docs/adr/0090-large-blocks-that-malloc-gives-are-not-cleared.md).
  void commit_uncleared(std::uintptr_t address, std::size_t length);
  // What is in one extent goes to another, which may hold anything: far pages stay where they are, local ones are not
  // copied. The old one reads as zeros then. Both are whole pages, committed, and nobody else uses them. False where
  // that cannot be done; then the old one is as it was, and the new one holds anything.
  bool move_contents(std::uintptr_t from, std::uintptr_t to, std::size_t length);

  // --- hints ----------------------------------------------------------------------------------------------------
  // Brings what the hint names, on this thread, and returns when it is there; what cannot be had, was never touched
  // or is being moved by others is left to the fault. Nothing before paging has begun. Not from a signal handler that
  // interrupted the runtime. Does not keep errno. Callers need not hold InsideRuntime.
  void hint(const Hint& hint);
  // The same without waiting: true when pages of the hint are on their way. They are there when is_on_its_way() says
  // no, for which somebody has to poll: poll_hints() gathers what has come for anybody, wait_for_hints() sleeps until
  // it may find something. A fault on such a page, or another hint for it, waits for it as ever. For those who have
  // something else to do meanwhile: prefetching, and fibers, which run another fiber.
  bool begin_hint(const Hint& hint);
  bool is_on_its_way(const Hint& hint) const;
  bool poll_hints();
  void wait_for_hints(std::uint64_t timeout_ns);
  // Pins: the pages stay, once they are here, until as many unpin() of the same range, or until the memory is given
  // back. 0, ENOMEM (nothing is pinned: more than half of the budget would be), EFAULT (not readable). What does not
  // lie in the window needs no pin.
  int pin(std::uintptr_t address, std::size_t length);
  int unpin(std::uintptr_t address, std::size_t length);
  // Gives up the pages that lie wholly in the range, without writing them back: they read as zeros. Before paging has
  // begun nothing happens. 0 or an errno.
  int discard(std::uintptr_t address, std::size_t length);
  // The resident pages of the range are among the next to leave; a thousand of them are remembered.
  void cold(std::uintptr_t address, std::size_t length);
  // hl_runtime.compute: has devices compute on those of the elements from `address` on that are far, and sets
  // done[i] for each piece that they did (one a page; with `indices` one an index). The others are the caller's to
  // compute. 0 or EINVAL. Blocks as Device::compute().
  int compute(const hl_computation& what, std::uintptr_t address, std::size_t count, const std::size_t* indices,
              void* results, unsigned char* done);
  // hl_runtime.apply: likewise by an operator, which devices may have and may not. A piece that lies on two pages, or
  // not in the window, is the caller's. What the arguments point to may be far.
  int apply(const hl_operator& which, const void* argument, std::span<const hl_piece> pieces, void* results,
            unsigned char* done);
  // hl_runtime.compose: has devices make pages of parts of far ones, and keep them. A page is replaced at one moment,
  // when its device has written what it is to hold; what the program writes to it before that moment is gone. Pages
  // that are resident, and those of which a part is dirty or all parts are here, are the caller's. Any sources and
  // targets; a source is what its page held at one moment after the call began. ENOTSUP, EINVAL or 0. Blocks as
  // Device::compose(). What the arguments point to may be far.
  int compose(std::uint32_t element_bytes, std::span<const hl_composed_page> pages,
              std::span<const hl_composed_part> parts, unsigned char* done);
  // hl_runtime.patch: has devices fill pages, or change elements of far ones. As compose(), but that a page whose
  // elements are changed is left to the caller where it was not far all the while: what others write to it stays.
  int patch(std::uint32_t element_bytes, std::span<const hl_patched_page> pages, std::span<const hl_patch> patches,
            unsigned char* done);
  // A byte a page of the window: bit 0 there, bit 1 writable without a fault (hint_map.hpp). Never moves.
  const std::atomic<std::uint8_t>* hint_map() const;

  // --- pages that the kernel must find at once ------------------------------------------------------------------
  // Keeps what lies in the window of [address, length) local and writable, until let_go() or until the memory is
  // given back. For what the kernel writes without waiting for a fault: PI and robust mutexes, a thread's own block.
  // Counted by page; the memory must be writable. Little of it: it comes out of the budget.
  void hold(std::uintptr_t address, std::size_t length);
  void let_go(std::uintptr_t address, std::size_t length);

  // --- what system calls use (docs/adr/0078-pins-without-move.md) --------------------------------------------------
  // Whether pages that the kernel has pinned stay by themselves: MOVE refuses them. Copying cannot see them.
  bool sees_pins() const;
  // For a system call that is about to read (write: or fill) these bytes: holds what of them lies in the window until
  // let_go_after_call(), and by signal brings it in. False: some of it cannot be had, or is not mapped, which is left
  // to the system call. Next to nothing where the bytes are there. Callable in a signal handler of the program's.
  // Both keep errno.
  bool hold_for_call(std::uintptr_t address, std::size_t length, bool write);
  void let_go_after_call(std::uintptr_t address, std::size_t length);

  // --- signal mode (bus_signal.hpp) -----------------------------------------------------------------------------
  bool faults_by_signal() const;
  // In the SIGBUS handler, under InsideRuntime. The address lies in the window.
  FaultOutcome serve_fault(std::uintptr_t address, bool write, bool write_protect);
  // The page has to come from a device that does not answer at once, or is on its way: a guess, for who has something
  // else to do meanwhile.
  bool is_far_away(std::uintptr_t address) const;

  // This process is a copy that was made without before_fork(): its regions stayed with the parent.
  bool is_copy() const;

  // --- fork without exec --------------------------------------------------------------------------------------
  // Around the system call, nothing in between; all in the forking thread, under InsideRuntime.
  // 0; or -errno, and the system call must not be made, but after_fork_in_parent(false).
  int before_fork();
  void after_fork_in_parent(bool forked);
  // Before anything is mapped in the child. after_fork_in_child() does it where nothing is.
  void reserve_in_child();
  void after_fork_in_child();

  // --- control ------------------------------------------------------------------------------------------------
  int set_budget(std::uint64_t bytes);  // 0, -EINVAL below the minimum
  std::uint64_t budget_bytes() const;
  // From now on the budget is for pages and the client's memory together. False: too many share it already, and the
  // client keeps the limit that it has. The client lives as long as the process. Does not block.
  bool join_budget(LedgerClient& client);
  // The thread that calls is one of the program's: `cpu` is where it last ran, kept by the kernel (rseq), so that
  // the fault handler can follow it. Until thread_ended().
  void thread_started(const volatile std::uint32_t* cpu);
  void thread_ended();
  // The process is about to end or to exec: its far device is told, which may then free its memory at once. stay():
  // it was not so. Everything works on as before. Best effort, some milliseconds at most; callable in a signal
  // handler.
  void leave_device();
  void stay_on_device();

 private:
  bool holds_outside(std::uintptr_t address) const;
  bool overlaps_outside(std::uintptr_t address, std::size_t length) const;
  friend class PagerParts;  // test doubles build their own, with other parts or without threads
  Pager() = default;
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  Impl* impl_ = nullptr;
};

}  // namespace hinterland
