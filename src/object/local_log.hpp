// Local objects, in regions of 1 MiB that are filled from one end to the other and emptied as a whole (AIFM 5.2). An
// object larger than an eighth of that is a span: regions side by side of its own.
//
//     free -> open        a lane fills it
//     open -> sealed      it is full; evacuators may claim it
//     sealed -> claimed   one of them does
//     claimed -> free     nothing in it is alive
//     claimed -> sealed   something stayed
//
// What becomes of the objects in a region is words.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "object/local_memory.hpp"
#include "object/words.hpp"

namespace hinterland::object {

inline constexpr std::size_t kRegionBytes = kMiB;
inline constexpr std::size_t kRegionObjectMax = kRegionBytes / 8;  // bytes of an object, header and all

struct Region {
  enum class State : std::uint8_t { free, open, sealed, claimed };
  Mutex lock;                             // of its objects' owners
  std::atomic<State> state{State::free};  // changes under LocalLog::mutex_
  bool nontemporal = false;
  std::uint32_t stamp = 0;                   // counts its lives: guarded by LocalLog::mutex_
  std::uint32_t end = 0;                     // bytes filled; of an open one, the lane's
  std::uint64_t span_bytes = 0;              // of a span's first region: of the object, header and all
  std::atomic<std::uint64_t> live_bytes{0};  // to choose by
  // Objects that must not move (hl::far::pinned). Grows within a scope or while the object's word is arriving, so
  // that it is seen after Grace::wait(). Nothing is emptied that has one.
  std::atomic<std::uint32_t> pins{0};
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::uint64_t left_bytes = kAll;  // of these, when an evacuator last let go of it: guarded by LocalLog::mutex_
};

// Where a thread puts new objects. Several threads may share one.
struct Lane {
  Mutex mutex;
  Region* region = nullptr;
  bool nontemporal = false;
};

struct Need {
  std::size_t units;      // whole, header included
  std::size_t alignment;  // of the object
};

class LocalLog {
 public:
  // `arena_bytes` of addresses, not of memory.
  static Result<std::unique_ptr<LocalLog>> create(LocalMemory& memory, std::uint64_t arena_bytes,
                                                  std::uint64_t reserved_bytes);
  ~LocalLog();
  LocalLog(const LocalLog&) = delete;
  LocalLog& operator=(const LocalLog&) = delete;

  std::uintptr_t base() const { return base_; }
  std::uint64_t bytes() const { return regions_count_ * kRegionBytes; }
  Region& region_of(const void* address) const {
    return regions_[(reinterpret_cast<std::uintptr_t>(address) - base_) / kRegionBytes];
  }
  // The object's region is not emptied until unpin(). When that may begin: Region::pins.
  void pin(const void* object) {
    region_of(object).pins.fetch_add(1, std::memory_order_relaxed);  // the end of the scope publishes it
  }
  void unpin(const void* object) {
    // release: pairs with the acquire of Evacuator::round(): what was done to the object comes before it moves.
    region_of(object).pins.fetch_sub(1, std::memory_order_release);
  }
  std::byte* begin_of(const Region& region) const {
    return reinterpret_cast<std::byte*>(base_) + static_cast<std::size_t>(&region - regions_) * kRegionBytes;
  }

  // Whose request it is: the program's leaves a reserve to evacuators, who need room to make room; `beyond` goes
  // beyond the limit, which is the last thing to do.
  enum class For : std::uint8_t { program, evacuator, beyond };
  // Room in the lane, its header marked as being made. nullptr: none is to be had for this purpose.
  Header* place(Lane& lane, const Need& need, For purpose);
  Header* place_span(std::size_t bytes, std::size_t alignment, bool nontemporal, For purpose);
  // Makes what was placed so far visible to evacuators.
  void seal(Lane& lane);

  // The sealed region that is best emptied next, claimed; nullptr when there is none. Non-temporal ones come first,
  // then the emptiest of those that are next in order of filling (the clock's hand).
  Region* claim();
  // A claimed region goes back: to the free ones, or, to be claimed again, to the sealed ones. One in which nothing
  // is left but orphans (Heap::keep_orphans) stays as it is: it would be chosen, in vain, again and again.
  enum class Left : std::uint8_t { nothing, orphans, some };
  void let_go(Region& region, Left left);
  // Gives free regions that are beyond the limit back to the kernel.
  void shed();
  // Calls each(Header*) for the objects of a claimed region, dead ones too.
  template <typename Each>
  void walk(const Region& region, const Each& each) const {
    std::byte* begin = begin_of(region);
    if (region.span_bytes != 0) return each(reinterpret_cast<Header*>(begin + region.end - sizeof(Header)));
    for (std::size_t at = 0; at < region.end;) {
      auto* header = reinterpret_cast<Header*>(begin + at);
      at += header->units() * kUnit;
      each(header);
    }
  }
  // Of all regions that are sealed. No other evacuator is at work.
  template <typename Each>
  void walk_sealed(const Each& each) {
    LockGuard guard(mutex_);
    for (const std::deque<Queued>& queue : sealed_)
      for (const Queued& queued : queue) {
        LockGuard owners(queued.region->lock);
        walk(*queued.region, each);
      }
  }
  std::uint64_t bytes_of(const Header* header) const {
    const std::uint64_t units = header->units();
    return units != 0 ? units * kUnit : region_of(header).span_bytes;
  }

  // What a request for the program could still be given, in regions.
  std::uint64_t regions_left() const;
  std::uint64_t regions_limit() const { return memory_.limit() / kRegionBytes; }

 private:
  struct Queued {
    Region* region;
    std::uint32_t stamp;
  };
  explicit LocalLog(LocalMemory& memory) : memory_(memory) {}
  Region* take(For purpose, bool nontemporal);
  bool pay(For purpose, std::uint64_t bytes);
  Region* take_addresses_locked(std::uint64_t count);
  void give_addresses_locked(std::uint64_t first, std::uint64_t count);
  void seal_locked(Region& region);
  Region* reopen_locked(bool nontemporal);
  Region* claim_from_locked(std::deque<Queued>& queue);
  void drop_memory(Region& region, std::uint64_t bytes);

  LocalMemory& memory_;
  std::uintptr_t base_ = 0;
  Region* regions_ = nullptr;
  std::uint64_t regions_count_ = 0, mapped_bytes_ = 0, reserved_bytes_ = 0;
  void* mapped_ = nullptr;

  mutable Mutex mutex_;                            // of what follows
  std::map<std::uint64_t, std::uint64_t> unused_;  // addresses without memory: first region, count
  std::vector<Region*> free_;                      // with memory that is paid for
  std::atomic<std::uint64_t> free_count_{0};       // their number, to steer by
  std::array<std::deque<Queued>, 2> sealed_;       // [1]: non-temporal
};

}  // namespace hinterland::object
