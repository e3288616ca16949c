// The descriptors that a device has open, for Device::descriptors(). Thread-safe, without locks; opening waits for
// others who open. Numbers that base/runtime_descriptors.hpp does not remember are not kept here either.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "base/runtime_descriptors.hpp"
#include "kernel/high_descriptor.hpp"

namespace hinterland::far {

class DescriptorSet {
 public:
  // Moves a descriptor out of the way of numbers that programs choose themselves (shells use up to 255). -EBADF as
  // hinterland::move_high(), of which this is one.
  static int move_high(int descriptor) { return hinterland::move_high(descriptor, kFirstHigh); }
  // What `open` opens (it returns a descriptor, or -1 with errno), moved to `wanted`, where that can be had (what is
  // there is replaced; -1: none is wanted), else to a number from `first` up that is none of the runtime's, else left
  // where it is. Opened again when the program closed it before it was moved. -errno when `open` fails.
  template <typename Open>
  int open_high(Open open, int wanted, int first) const {
    LockGuard alone(opening_);
    for (;;) {
      int opened = open();
      if (opened < 0) return -errno;
      if (int moved = move_beside(opened, wanted, first); moved != -EBADF) return moved;
    }
  }
  // Once only: -EBADF when the program closed it before it was moved.
  template <typename Open>
  int open_high_once(Open open, int wanted, int first) const {
    LockGuard alone(opening_);
    int opened = open();
    return opened < 0 ? -errno : move_beside(opened, wanted, first);
  }
  // A copy under a number that is none of the runtime's: from `first` up where there is one. -errno; -EBADF: it is
  // not open.
  int copy_beside(int descriptor, int first) const {
    int copy = copy_high(descriptor, first);
    if (copy >= 0 || copy == -EBADF) return copy;
    copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return copy >= 0 ? copy : -errno;
  }
  // What `open` opens, moved high and kept. Returns its number, or -errno when `open` fails.
  template <typename Open>
  int adopt(Open open) {
    int descriptor = open_high(open, kFree, kFirstHigh);
    add(descriptor);
    return descriptor;
  }
  void add(int descriptor) {
    if (!is_remembered(descriptor)) return;
    note_runtime_descriptor(descriptor);
    // relaxed throughout: the numbers are all there is, ordered with nothing
    word_of(descriptor).fetch_or(bit_of(descriptor), std::memory_order_relaxed);
  }
  // True if it was kept.
  bool remove(int descriptor) {
    if (!is_remembered(descriptor)) return false;
    const std::uint64_t bit = bit_of(descriptor);
    if ((word_of(descriptor).fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) return false;
    forget_runtime_descriptor(descriptor);
    return true;
  }
  // Closes a descriptor that is still kept here; in a forked child close_all_after_fork() may have done so before.
  void close(int descriptor) {
    if (remove(descriptor)) ::close(descriptor);
  }
  // In a forked child: none of them is ours, or all are closed.
  void clear_after_fork() {
    opening_.reset_after_fork();
    for_each([this](int descriptor) { remove(descriptor); });
  }
  void close_all_after_fork() {
    opening_.reset_after_fork();
    for_each([this](int descriptor) { close(descriptor); });
  }
  std::size_t list(int* out, std::size_t max) const {
    std::size_t used = 0;
    for_each([&](int descriptor) {
      if (used < max) out[used++] = descriptor;
    });
    return used;
  }

 private:
  int move_beside(int descriptor, int wanted, int first) const {
    int moved = wanted;
    if (wanted < 0 || wanted == descriptor || dup3(descriptor, wanted, O_CLOEXEC) < 0)
      moved = copy_high(descriptor, first);
    if (moved == -EBADF) return moved;
    if (moved >= 0) ::close(descriptor);
    return moved >= 0 ? moved : descriptor;
  }

  static bool is_remembered(int descriptor) { return descriptor >= 0 && descriptor < kRememberedDescriptors; }
  static std::uint64_t bit_of(int descriptor) { return std::uint64_t{1} << (descriptor % 64); }
  std::atomic<std::uint64_t>& word_of(int descriptor) { return kept_[static_cast<std::size_t>(descriptor) / 64]; }
  template <typename Do>
  void for_each(Do each) const {
    for (std::size_t word = 0; word < kept_.size(); ++word)
      for (std::uint64_t bits = kept_[word].load(std::memory_order_relaxed); bits != 0; bits &= bits - 1)
        each(static_cast<int>(word * 64) + std::countr_zero(bits));
  }

  static constexpr int kFree = -1;
  static constexpr int kFirstHigh = 940;                                        // below the usual soft limit of 1024
  std::array<std::atomic<std::uint64_t>, kRememberedDescriptors / 64> kept_{};  // a bit for each number
  // Held from the opening of a descriptor until it has its high number: were its first number closed by the program,
  // and given to another one that is being opened, both would go on with the same.
  mutable Mutex opening_;
};

}  // namespace hinterland::far
