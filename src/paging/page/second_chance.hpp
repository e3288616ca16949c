// Whether a clean page that leaves is worth a frame, so that it comes back without being fetched (ADR 0011): how
// often a page that was kept in one is touched again before the frame is needed. (A dirty page always takes one, to
// be written from.)
//
// Any thread. Relaxed counters, halved now and then so that they follow the program.
#pragma once

#include <atomic>
#include <cstdint>

namespace hinterland {

class SecondChance {
 public:
  bool enabled = false;
  bool adapts = true;  // else clean pages always get a frame, whatever becomes of them
  // Else the program's device answers at once: what comes out of a frame costs what comes from there, and getting it
  // into the frame comes on top. That the page is in use its policy learns from the fault (ADR 0025).
  bool saves_a_fetch = true;
  void note_parked() {
    if (parked_.fetch_add(1, std::memory_order_relaxed) < 4096) return;
    parked_.store(2048, std::memory_order_relaxed);
    hits_.store(hits_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }
  void note_hit() { hits_.fetch_add(1, std::memory_order_relaxed); }
  // For the next clean page; `saves`: saves_a_fetch, or what it is for this page's device. Now and then one gets a
  // frame although it does not pay, to see whether it would. `sample`: the caller's, who is one thread.
  bool keeps_clean(bool saves, std::uint32_t* sample) const {
    if (!enabled) return false;
    return !adapts || (saves && (pays() || ++*sample % kSampleEvery == 0));
  }

 private:
  static constexpr std::uint32_t kSampleEvery = 16;

  // One in eight: a hit saves a fetch (3 us from RAM, tens from a network), a frame costs about 0.8 us (the floor).
  bool pays() const {
    return hits_.load(std::memory_order_relaxed) * 8 > parked_.load(std::memory_order_relaxed) + 64;
  }

  std::atomic<std::uint32_t> parked_{0};
  std::atomic<std::uint32_t> hits_{0};
};

}  // namespace hinterland
