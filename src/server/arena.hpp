// The server's memory: one reserved range, cut into slabs, handed out and taken back. Memory is touched only as
// clients write, and goes back to the kernel when they discard it; a slab that changes hands reads as zeros.
//
// A slab is counted: its session is one holder, and every transfer that is under way is another. Only when the last
// lets go is the slab wiped and free, so a release can never pull memory away under a transfer, or hand it to
// another session while bytes of the old one still arrive. Until then it counts as its session's.
//
// Wiping takes time: 0.6 ms a slab. A thread of its own does it (wipe_until_stopped), in slices, so that the end of a
// client that had a lot holds up nobody.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "far/device.hpp"
#include "server/account.hpp"

namespace hinterland {

class Arena {
 public:
  // Whole slabs only; bytes that do not fill one are left.
  static Result<std::unique_ptr<Arena>> create(std::uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::uint32_t slabs() const { return slabs_; }
  std::uint32_t slabs_used() const { return used_.load(std::memory_order_relaxed); }
  std::uint32_t slabs_to_wipe() const { return to_wipe_.load(std::memory_order_relaxed); }

  // Held once; all zeros. False when there is none, or the account has taken all that it may.
  bool allocate(const std::shared_ptr<SlabAccount>& account, std::uint32_t* slab);
  // One holder more. False when the slab is free. The caller must then check that it is still the slab it meant.
  bool hold(std::uint32_t slab);
  void let_go(std::uint32_t slab);

  // Of a held slab:
  std::byte* page(std::uint32_t slab, std::uint32_t page) const {
    return memory_ + std::size_t{slab} * far::kSlabBytes + bytes_of_pages(page);
  }
  // A write of the page with this stamp begins: false when a later one was there before (wire.hpp: stamps).
  bool begin_write(std::uint32_t slab, std::uint32_t page, std::uint64_t stamp);
  // A whole write of the page at once, unless a later one has begun: between a write that was sent again and this one
  // no page is torn, whichever of them a connection serves last.
  void write(std::uint32_t slab, std::uint32_t page, std::uint64_t stamp, const std::byte* bytes);
  // Wipes what nobody holds, and sleeps while there is nothing. On a thread of its own, until stop_wiping().
  void wipe_until_stopped();
  void stop_wiping();

  // Gives pages back that were not written since `stamp`. Returns how many.
  std::uint32_t discard(std::uint32_t slab, std::uint32_t first, std::uint32_t count, std::uint64_t stamp);

 private:
  Arena() = default;
  enum class Taken : std::uint8_t { none, clean, dirty, soon };
  Taken take_free(std::uint32_t* slab);
  bool take_to_wipe_locked(std::uint32_t* slab);
  void wipe(std::uint32_t slab);
  std::uint64_t* stamps(std::uint32_t slab) const { return stamps_ + std::size_t{slab} * far::kSlabPages; }

  struct Slab {
    std::atomic<std::uint32_t> holders{0};  // 0: free
    std::shared_ptr<SlabAccount> account;   // of who holds it: touched by the first holder and by the last only
    Mutex mutex;                            // guards its stamps, and a discard against the beginning of a write
  };

  std::byte* memory_ = nullptr;
  std::byte* mapping_ = nullptr;  // memory_ aligned up to huge pages lies in it
  std::size_t mapping_bytes_ = 0;
  std::uint64_t* stamps_ = nullptr;  // of the last write of each page
  std::uint32_t slabs_ = 0;
  std::unique_ptr<Slab[]> slab_;
  std::atomic<std::uint32_t> used_{0}, to_wipe_{0};  // relaxed: figures
  Mutex free_mutex_;
  std::vector<std::uint32_t> free_;   // all zeros; guarded by free_mutex_
  std::vector<std::uint32_t> dirty_;  // to be wiped; guarded by free_mutex_
  bool wiping_ = false;               // one that is in neither list is being wiped; guarded by free_mutex_
  std::atomic<std::uint32_t> work_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace hinterland
