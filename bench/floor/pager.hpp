// The least that can page: a range, a store that holds every page of it, and a first-in-first-out queue of what is
// resident. No states, no locks, no policy: one thread at a time calls it.
//
//     store (ordinary memory) --COPY, or memcpy into a frame and MOVE--> range --dropped, copied, or MOVEd--> store
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "floor/calls.hpp"

namespace hinterland::bench {

// How a page travels. "clean" drops what leaves; "dirty" brings every leaving page's bytes to the store first, in a
// way that loses no concurrent write.
enum class Way {
  copy_clean,          // COPY in; batches of scattered DONTNEED out
  copy_dirty_move,     // COPY in; MOVE out to a frame, memcpy to the store, the frames dropped in batches
  copy_dirty_protect,  // COPY in; write-protect, memcpy to the store, batches of scattered DONTNEED out
  move_clean,          // memcpy into a frame, MOVE in; MOVE out to the same frame
  move_dirty,          // the same, and memcpy from the frame to the store
};

constexpr bool writes(Way way) { return way != Way::copy_clean && way != Way::move_clean; }
constexpr bool moves_in(Way way) { return way == Way::move_clean || way == Way::move_dirty; }
constexpr bool needs_move(Way way) { return moves_in(way) || way == Way::copy_dirty_move; }
const char* name_of(Way way);

class Pager {
 public:
  struct Shape {
    Way way = Way::copy_clean;
    std::size_t run_pages = 1;    // fetched and evicted together; page counts are multiples of it
    std::size_t local_pages = 0;  // resident at most
    std::size_t batch_pages = 0;  // one eviction takes so many (one run where runs are moved in)
    Delivery delivery = Delivery::message;
  };

  // store: as many bytes as the range; the caller's, and shared with nobody meanwhile.
  Pager(std::span<std::byte> store, const Shape& shape);

  Faults& faults() { return faults_; }
  const Shape& shape() const { return shape_; }
  std::size_t pages() const { return range_.pages(); }
  std::byte* page(std::size_t index) const { return range_.page(index); }
  bool contains(const std::byte* address) const {
    return address >= range_.data() && address < range_.data() + range_.bytes();
  }
  bool resident(std::size_t index) const { return resident_[index / shape_.run_pages]; }
  std::uint64_t fetches() const { return fetches_; }  // runs, since the start

  // Makes the run around a page that is not resident resident, evicting when the budget is full.
  void fetch(std::size_t index);

 private:
  void bring_in(std::size_t run);
  void evict(std::size_t runs);
  void evict_dropping(std::size_t runs);
  void evict_moving(std::size_t runs);
  void evict_into_frame();
  std::size_t take_oldest();
  std::byte* run_address(std::size_t run) const { return range_.page(run * shape_.run_pages); }
  std::byte* stored(std::size_t run) const { return store_.data() + bytes_of_pages(run * shape_.run_pages); }

  Shape shape_;
  std::size_t run_bytes_;
  std::size_t batch_runs_;
  std::span<std::byte> store_;
  Mapping range_;
  Mapping frames_;  // one batch; empty between evictions, but for the one frame of the ways that move in
  Faults faults_;
  bool frame_filled_ = false;
  std::vector<std::uint8_t> resident_;  // by run
  std::vector<std::uint32_t> queue_;    // a ring of resident runs, oldest at oldest_
  std::size_t oldest_ = 0, queued_ = 0;
  std::vector<iovec> leaving_;
  std::uint64_t fetches_ = 0;
};

}  // namespace hinterland::bench
