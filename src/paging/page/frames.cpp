#include "paging/page/frames.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

Status FrameRing::create(std::uint32_t frames) {
  void* memory = reserve_zeroed(bytes_of_pages(frames));
  if (memory == nullptr) return std::unexpected(Error::make(ENOMEM, "no address space for %u frames", frames));
  // Huge pages would make single frames impossible to give back.
  raw_madvise(memory, bytes_of_pages(frames), MADV_NOHUGEPAGE);
  raw_madvise(memory, bytes_of_pages(frames), MADV_DONTDUMP);
  base_ = reinterpret_cast<std::uintptr_t>(memory);
  capacity_ = frames;
  frames_ = static_cast<Frame*>(reserve_zeroed(frames * sizeof(Frame)));
  if (frames_ == nullptr) return std::unexpected(Error::make(ENOMEM, "no address space for %u frames", frames));
  return {};
}

FrameRun FrameRing::take(std::uint32_t wanted) {
  LockGuard guard(mutex_);
  std::uint32_t first = static_cast<std::uint32_t>(head_ % capacity_);
  std::uint32_t room = capacity_ - static_cast<std::uint32_t>(head_ - tail_);
  std::uint32_t count = std::min({wanted, room, capacity_ - first});
  for (std::uint32_t i = 0; i < count; ++i)
    frames_[first + i].state.store(FrameState::leaving, std::memory_order_relaxed);  // mutex orders it
  head_ += count;
  return {first, count};
}

void FrameRing::untake(FrameRun run, std::uint32_t count) {
  // The lock first: once a frame is empty, another evictor's expire() may let the tail pass it, and then the head
  // must not come back to it.
  LockGuard guard(mutex_);
  for (std::uint32_t i = run.count - count; i < run.count; ++i)
    frames_[run.first + i].state.store(FrameState::empty, std::memory_order_relaxed);  // mutex orders it
  // Usually nobody took frames meanwhile; otherwise they stay empty in the ring until the tail passes them.
  bool newest = head_ % capacity_ == (run.first + run.count) % capacity_;
  if (newest && head_ - count >= tail_) head_ -= count;
}

void FrameRing::pass_empty() {
  // relaxed: one that is emptied at this moment can wait for the next time
  while (tail_ < head_ && frames_[tail_ % capacity_].state.load(std::memory_order_relaxed) == FrameState::empty)
    ++tail_;
}

void FrameRing::give_to_kernel(Kernel& kernel, std::uint32_t first, std::uint32_t length) {
  iovec range{reinterpret_cast<void*>(address_of(first)), bytes_of_pages(length)};
  kernel.discard({&range, 1});
  for (std::uint32_t i = 0; i < length; ++i)
    frames_[first + i].state.store(FrameState::empty,
                                   std::memory_order_relaxed);  // the mutex orders it against take()
}

std::uint32_t FrameRing::give_back_dropped(Kernel& kernel, std::span<std::uint32_t> frames) {
  std::array<iovec, kGivenBackMax> ranges;
  HL_CHECK(frames.size() <= ranges.size());
  std::ranges::sort(frames);  // behind the end of the ring its beginning follows
  LockGuard guard(mutex_);
  std::size_t count = 0;
  std::uint32_t given_back = 0;
  for (std::uint32_t frame : frames) {
    if (frames_[frame].state.load(std::memory_order_acquire) != FrameState::dropped) continue;  // pairs with drop()
    dropped_.fetch_sub(1, std::memory_order_relaxed);
    frames_[frame].state.store(FrameState::empty, std::memory_order_relaxed);  // the mutex orders it against take()
    ++given_back;
    iovec* last = count != 0 ? &ranges[count - 1] : nullptr;
    if (last != nullptr && reinterpret_cast<std::uintptr_t>(last->iov_base) + last->iov_len == address_of(frame))
      last->iov_len += kPageSize;
    else
      ranges[count++] = {reinterpret_cast<void*>(address_of(frame)), kPageSize};
  }
  if (count != 0) kernel.discard(std::span(ranges.data(), count));
  return given_back;
}

std::uint32_t FrameRing::used() {
  LockGuard guard(mutex_);
  pass_empty();
  return static_cast<std::uint32_t>(head_ - tail_);
}

bool FrameRing::blocked() {
  LockGuard guard(mutex_);
  return head_ - tail_ == capacity_ &&
         frames_[tail_ % capacity_].state.load(std::memory_order_relaxed) == FrameState::leaving;
}

void FrameRing::abandon_all() {
  mutex_.reset_after_fork();
  for (std::uint64_t at = tail_; at < head_; ++at)
    frames_[at % capacity_].state.store(FrameState::empty, std::memory_order_relaxed);  // single-threaded here
  raw_madvise(reinterpret_cast<void*>(base_), bytes_of_pages(capacity_), MADV_DONTNEED);
  tail_ = head_;
  dropped_.store(0, std::memory_order_relaxed);  // as above
}

}  // namespace hinterland
