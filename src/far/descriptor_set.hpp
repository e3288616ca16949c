// The descriptors that a device has open, for Device::descriptors(). Thread-safe and without locks: the program's
// close() reads it each time. Bounded: a descriptor beyond the last place works, but is not protected.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "base/runtime_descriptors.hpp"

namespace hinterland::far {

class DescriptorSet {
 public:
  DescriptorSet() {
    for (auto& place : places_) place.store(kFree, std::memory_order_relaxed);
  }

  // Moves a descriptor out of the way of numbers that programs choose themselves (shells use up to 255).
  static int move_high(int descriptor) {
    int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstHigh);
    if (high >= 0) ::close(descriptor);
    int kept = high >= 0 ? high : descriptor;
    note_runtime_descriptor(kept);
    return kept;
  }
  // The same from `first` up, to a number that is not one of these. What a program has closed by a call that nobody
  // sees is still listed here, until its owner misses it: under its number he would take another descriptor for his.
  int move_high_beside(int descriptor, int first) const {
    for (int from = first;;) {
      int high = fcntl(descriptor, F_DUPFD_CLOEXEC, from);
      if (high < 0) return descriptor;
      if (!contains(high)) {
        ::close(descriptor);
        return high;
      }
      ::close(high);
      from = high + 1;
    }
  }
  bool contains(int descriptor) const {
    for (const auto& place : places_)
      if (place.load(std::memory_order_relaxed) == descriptor) return true;
    return false;
  }
  // Moves it high and keeps it (if it is one). Returns its number now.
  int adopt(int descriptor) {
    if (descriptor < 0) return descriptor;
    descriptor = move_high(descriptor);
    add(descriptor);
    return descriptor;
  }
  void add(int descriptor) {
    if (descriptor < 0) return;
    note_runtime_descriptor(descriptor);
    for (auto& place : places_) {
      int free = kFree;
      // relaxed throughout: the numbers are all there is, ordered with nothing
      if (place.compare_exchange_strong(free, descriptor, std::memory_order_relaxed)) return;
    }
  }
  // True if it was kept.
  bool remove(int descriptor) {
    if (descriptor < 0) return false;
    for (auto& place : places_) {
      int kept = descriptor;
      if (place.compare_exchange_strong(kept, kFree, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  // Closes a descriptor that is still kept here; in a forked child close_all() may have done so before.
  void close(int descriptor) {
    if (remove(descriptor)) ::close(descriptor);
  }
  void clear() {
    for (auto& place : places_) place.store(kFree, std::memory_order_relaxed);
  }
  void close_all() {
    for (auto& place : places_)
      if (int descriptor = place.exchange(kFree, std::memory_order_relaxed); descriptor >= 0) ::close(descriptor);
  }
  std::size_t list(int* out, std::size_t max) const {
    std::size_t used = 0;
    for (const auto& place : places_)
      if (int descriptor = place.load(std::memory_order_relaxed); descriptor >= 0 && used < max)
        out[used++] = descriptor;
    return used;
  }

 private:
  static constexpr int kFree = -1;
  static constexpr int kFirstHigh = 940;  // below the usual soft limit of 1024
  std::array<std::atomic<int>, 48> places_;
};

}  // namespace hinterland::far
