#include "floor/pager.hpp"

#include <algorithm>
#include <cstring>

namespace hinterland::bench {

const char* name_of(Way way) {
  switch (way) {
    case Way::copy_clean:
      return "copy-clean";
    case Way::copy_dirty_move:
      return "copy-dirty-move";
    case Way::copy_dirty_protect:
      return "copy-dirty-protect";
    case Way::move_clean:
      return "move-clean";
    case Way::move_dirty:
      return "move-dirty";
  }
  return "";
}

Pager::Pager(std::span<std::byte> store, const Shape& shape)
    : shape_(shape),
      run_bytes_(bytes_of_pages(shape.run_pages)),
      batch_runs_(moves_in(shape.way) ? 1 : std::max<std::size_t>(1, shape.batch_pages / shape.run_pages)),
      store_(store),
      range_(store.size()),
      frames_(batch_runs_ * run_bytes_),
      faults_(shape.delivery) {
  if (needs_move(shape.way) && !faults_.can_move()) throw Unavailable("this kernel has no UFFDIO_MOVE (Linux 6.8)");
  faults_.add(range_, shape.way == Way::copy_dirty_protect);
  faults_.add(frames_);
  std::size_t runs = range_.pages() / shape.run_pages, local_runs = shape.local_pages / shape.run_pages;
  if (local_runs <= batch_runs_)
    throw Unavailable("fewer local pages than one eviction takes: give a larger --local");
  resident_.resize(runs);
  queue_.resize(local_runs);
  leaving_.reserve(batch_runs_);
}

void Pager::fetch(std::size_t index) {
  std::size_t run = index / shape_.run_pages;
  if (queued_ == queue_.size() && !moves_in(shape_.way)) evict(batch_runs_);
  bring_in(run);
  // The frame that MOVE in has just emptied takes the victim.
  if (queued_ == queue_.size()) evict_into_frame();
  queue_[(oldest_ + queued_++) % queue_.size()] = static_cast<std::uint32_t>(run);
  resident_[run] = 1;
  ++fetches_;
}

void Pager::bring_in(std::size_t run) {
  if (!moves_in(shape_.way)) {
    faults_.copy(run_address(run), stored(run), run_bytes_);
    return;
  }
  if (frame_filled_) {
    std::memcpy(frames_.data(), stored(run), run_bytes_);
  } else {
    faults_.copy(frames_.data(), stored(run), run_bytes_);  // until the budget is full, frames come from the kernel
  }
  faults_.move(run_address(run), frames_.data(), run_bytes_);
  frame_filled_ = false;
}

std::size_t Pager::take_oldest() {
  std::size_t run = queue_[oldest_];
  oldest_ = (oldest_ + 1) % queue_.size();
  --queued_;
  resident_[run] = 0;
  return run;
}

void Pager::evict(std::size_t runs) {
  shape_.way == Way::copy_dirty_move ? evict_moving(runs) : evict_dropping(runs);
}

void Pager::evict_dropping(std::size_t runs) {
  leaving_.clear();
  for (std::size_t i = 0; i < runs; ++i) {
    std::size_t run = take_oldest();
    leaving_.push_back({run_address(run), run_bytes_});
    if (!writes(shape_.way)) continue;
    faults_.protect(run_address(run), run_bytes_, true);
    std::memcpy(stored(run), run_address(run), run_bytes_);
  }
  discard(leaving_);
}

void Pager::evict_moving(std::size_t runs) {
  for (std::size_t i = 0; i < runs; ++i) {
    std::size_t run = take_oldest();
    std::byte* frame = frames_.data() + i * run_bytes_;
    faults_.move(frame, run_address(run), run_bytes_);
    std::memcpy(stored(run), frame, run_bytes_);
  }
  discard(frames_.data(), runs * run_bytes_);
}

void Pager::evict_into_frame() {
  std::size_t run = take_oldest();
  faults_.move(frames_.data(), run_address(run), run_bytes_);
  frame_filled_ = true;
  if (writes(shape_.way)) std::memcpy(stored(run), frames_.data(), run_bytes_);
}

}  // namespace hinterland::bench
