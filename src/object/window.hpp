// The object window: addresses at which blocks of a program's heap lie that are far one by one, for programs whose
// compiler put guards before their loads and stores (TrackFM, ASPLOS 2024, 3; docs/adr/0064-guards.md).
//
// The window has a part for each size of slots, 2^5 to 2^11 bytes. A block is a slot's; its bytes are an object of
// the heap of far objects, and the slot's word (words.hpp) lies where the address alone leads: shifted right by the
// number of its part, times 8. So a guard finds it without a table to look up (guards.hpp).
//
// A page of the window is in one of two states:
//
//     apart   it has no frame. The words of its slots are those of objects, or 0. Whoever touches it without a guard
//             (libc, code of others, the kernel) waits, and the keeper brings it home.
//     home    it has a frame, in which all its blocks are. The words of its slots are their own addresses. So guards,
//             and everybody else, use it as ordinary memory.
//
// Who changes a page's state, or a word from or to 0, holds the lock of the page. What guards do is ordered with that
// by one rule: a guard reads a word and uses what it says in one restartable sequence (rseq(2)). Who has changed
// words so that they lead to the runtime calls Grace::restart_guards(), after which no guard uses what a word said
// before. Evacuators do the same in Grace::wait().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "kernel/faulted_range.hpp"
#include "object/heap.hpp"

namespace hinterland::object {

class Window {
 public:
  static constexpr unsigned kShiftMin = 5, kShiftMax = 11, kParts = kShiftMax - kShiftMin + 1;
  static constexpr unsigned kPartShift = 40;
  static constexpr std::uintptr_t kBase = std::uintptr_t{kShiftMin} << kPartShift;
  static constexpr std::size_t kBytes = std::size_t{kParts} << kPartShift;
  // Of a part, what blocks may lie in.
  static constexpr std::size_t kPartBytes = 64 * kGiB;
  static constexpr std::size_t kBlockMax = std::size_t{1} << kShiftMax;

  static bool contains(const void* address) { return reinterpret_cast<std::uintptr_t>(address) - kBase < kBytes; }

  // Once a process: the addresses are fixed. The heap outlives it. Fails where the addresses are taken, or the kernel
  // has not what it needs; the error says what.
  static Result<std::unique_ptr<Window>> create(Heap& heap);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // A block of so many bytes, at a multiple of 16, which is never 0 bytes. nullptr: larger than kBlockMax, or nothing
  // is left. Any thread that is in no scope; signals are blocked; may wait for evacuators, 10 ms at most.
  void* allocate(std::size_t bytes, bool zeroed);
  // False: no block begins there, and nothing was done.
  bool release(void* block);
  std::size_t size_of(const void* block) const;  // 0: no block begins there

  // For a guard that found no local object: it is made so. 0: look again; or an errno, and the object is lost. Blocks
  // while it is brought. Where no block is, nothing is done: the caller touches the address itself. Signals are
  // blocked.
  int reach(std::uintptr_t address, bool write);

  // Around a fork: every page is apart, and nobody is in the window. Between Heap's own.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  // Statistics of tests. Relaxed.
  std::uint64_t pages_home() const { return pages_home_.load(std::memory_order_relaxed); }
  std::uint64_t pages_brought_home() const { return brought_home_.load(std::memory_order_relaxed); }
  std::uint64_t reached() const { return reached_.load(std::memory_order_relaxed); }

  static Word* word_of(std::uintptr_t address) {
    return reinterpret_cast<Word*>((address >> (address >> kPartShift)) * sizeof(Word));
  }

 private:
  // A part's tables, as long as its slots or pages are many; memory only where something was written.
  struct Part {
    Mutex mutex;             // of what slots are free, and of what is opened
    std::uint32_t next = 0;  // set by map_tables(): the first pages stay empty
    std::uint64_t opened_bytes = 0;
    std::vector<std::uint32_t> free;
    std::uint8_t* sizes = nullptr;  // of a slot's block, in units of 16 bytes; 0: none. Under the page's lock.
    std::atomic<std::uint8_t>* home = nullptr;  // by page: 1. Changes under the page's lock.
  };
  struct Slot {
    std::uintptr_t address;
    std::uint8_t* size;
  };
  static constexpr std::size_t kLocks = 512, kSlotsMax = kPageSize >> kShiftMin;

  explicit Window(Heap& heap) : heap_(heap) {}
  Status map_tables();
  Status begin();
  static void* keeper_main(void* self);
  static void* holder_main(void* self);
  void keep();
  void serve(std::uintptr_t page);

  Part& part_of(std::uintptr_t address) { return parts_[(address >> kPartShift) - kShiftMin]; }
  const Part& part_of(std::uintptr_t address) const { return parts_[(address >> kPartShift) - kShiftMin]; }
  Mutex& lock_of(std::uintptr_t address) { return locks_[(address >> 12) * 0x9e3779b1 % kLocks]; }
  std::atomic<std::uint8_t>& home_of(std::uintptr_t address);
  std::uint8_t& size_at(std::uintptr_t address) const;
  bool take_slot(Part& part, unsigned shift, std::uint32_t* slot);
  bool fill_slot(std::uintptr_t address, std::size_t bytes, bool zeroed);
  void wait_for_room();
  template <typename Each>
  void each_slot(std::uintptr_t page, const Each& each);

  // --- pages (window_pages.cpp), under the page's lock
  int bring_home_locked(std::uintptr_t page);
  bool collect_locked(std::uintptr_t page);
  void be_apart_again_locked(std::uintptr_t page);
  void lose_locked(std::uintptr_t page, int error);
  bool send_apart(std::uintptr_t page);
  bool send_apart_locked(std::uintptr_t page);
  std::size_t pages_home_max() const;

  Heap& heap_;
  std::array<Part, kParts> parts_;
  std::array<Mutex, kLocks> locks_;
  std::unique_ptr<FaultedRange> range_;

  Mutex keeping_;                     // held by the keeper while it serves, and by who forks
  std::deque<std::uintptr_t> order_;  // of pages that are home, the longest first. Under keeping_, as are these:
  std::array<Word, kSlotsMax> moved_{};
  alignas(kPageSize) std::array<std::byte, kPageSize> bytes_;
  Grace::Slot* slot_ = nullptr;  // the keeper's

  std::atomic<std::uint64_t> pages_home_{0}, brought_home_{0}, reached_{0};
  std::atomic<std::uint32_t> ended_{1};  // futex
};

}  // namespace hinterland::object
