// The space allocator: single far pages out of a device's slabs, counted, so that forked processes can share them.
//
// Its tables live in memory shared with forked children (MAP_SHARED): a page written before a fork belongs to both
// sides, and is free again when both have let it go. What a process held that is gone, others let go for it (reap).
// Reference count 0 means free. A process takes pages only out of slabs it has claimed, so allocation is without
// contention; anybody may release.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "far/device.hpp"
#include "far/holders.hpp"

namespace hinterland::far {

class Space {
 public:
  // `max_bytes` bounds the tables (4 bytes a page, touched as used), not the device.
  static Result<std::unique_ptr<Space>> create(Device& device, std::uint64_t max_bytes);
  ~Space();

  // Takes up to out.size() pages, adjacent ones where it can, each with reference count 1. Returns how many (0 with
  // *error set to an errno, ENOSPC when the device is full). Thread-safe. Takes a slab from the device when needed.
  std::size_t allocate(std::span<FarPage> out, int* error);

  // Before a fork: the holder that retain() counts for is the child. One at a time.
  void begin_child();
  // The fork failed: gives back what was retained for the child.
  void cancel_child();
  // One more holder for each page (before a fork, for the child).
  void retain(std::span<const FarPage> pages);
  // One more holder for each page that this process holds, until give_back(): for as long as somebody reads it there.
  // Not noted: a process that dies meanwhile keeps the page for as long as others share the space.
  void borrow(std::span<const FarPage> pages);
  void give_back(std::span<const FarPage> pages) { let_go(pages); }
  // One holder less; at zero the page is discarded on the device and free, and an empty slab goes back.
  void release(std::span<const FarPage> pages);

  // In a forked child, after Device::after_fork_in_child(): slabs claimed by the parent stay the parent's.
  void after_fork_in_child();

  // By a thread that lives as long as the process (and once): from then on other processes notice its end.
  void enter_process() { holders_.enter(place_); }
  // Until another thread has done so: before, an end would go unnoticed, and keep its pages for good.
  void wait_until_entered() { holders_.wait_until_entered(place_); }
  // Lets go for processes that are gone: up to kReapPages of their pages a call. True when there may be more.
  // Must not run during a fork.
  bool reap();
  bool is_shared() const { return holders_.shared(); }

  std::uint64_t pages_in_use() const;  // by all processes that share the space

 private:
  struct Shared;
  struct Claims;
  explicit Space(Device& device);

  std::size_t take_pages_locked(std::span<FarPage> out);
  std::size_t take_run_locked(std::uint32_t shortest, std::span<FarPage> out);
  bool find_slab_locked(bool any);
  int grow_locked();
  void let_go(std::span<const FarPage> pages);
  bool let_go_of(FarPage page);
  bool empty(std::uint32_t place, std::size_t pages_max);
  void finish_leaving(std::uint32_t place);
  void return_slabs_of(std::uint32_t owner);
  void finish_release(std::span<const FarPage> pages);
  void drop_uses(std::uint32_t slab, std::uint32_t pages);
  bool keep_as_spare(std::uint32_t slab);

  static constexpr std::size_t kReapPages = 8192;

  Device& device_;
  Holders holders_;
  std::uint32_t place_ = Holders::kNone;        // ours; set while there is one thread
  std::uint32_t child_place_ = Holders::kNone;  // of the child that is about to be forked
  std::uint32_t reaping_ = Holders::kNone;      // of a process that is gone; one thread calls reap()
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Claims> claims_;
};

}  // namespace hinterland::far
