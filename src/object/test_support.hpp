// What tests of far objects share: a heap over any device, ended with the test, and objects that know their contents.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "far/device.hpp"
#include "far/test_support.hpp"
#include "hinterland/object.hpp"
#include "object/entry.hpp"

namespace hinterland::object::testing {

class HeapForTest {
 public:
  explicit HeapForTest(const std::string& url = "mem:", std::uint64_t local_bytes = HeapOptions::kLocalBytesMin,
                       unsigned evacuators = 1) {
    auto device = far::open_device(url, {});
    if (!device) {
      ADD_FAILURE() << device.error().what();
      return;
    }
    begin(std::move(*device), local_bytes, evacuators);
  }
  HeapForTest(std::unique_ptr<far::Device> device, std::uint64_t local_bytes, unsigned evacuators) {
    begin(std::move(device), local_bytes, evacuators);
  }
  ~HeapForTest() { end_heap(); }
  HeapForTest(const HeapForTest&) = delete;
  HeapForTest& operator=(const HeapForTest&) = delete;

  Heap* operator->() const { return current_heap(); }

 private:
  static void begin(std::unique_ptr<far::Device> device, std::uint64_t local_bytes, unsigned evacuators) {
    register_fork_handlers();
    HeapOptions options;
    options.local_bytes = local_bytes;
    options.evacuators = evacuators;
    options.arena_bytes = 16 * kGiB;
    options.far_bytes_max = 16 * kGiB;
    if (Status begun = begin_heap(options, std::move(device)); !begun) ADD_FAILURE() << begun.error().what();
  }
};

// An object of any size, all of whose bytes follow from `id`.
template <std::size_t kBytes>
struct Known {
  static_assert(kBytes % 8 == 0);
  std::uint64_t words[kBytes / 8];

  static std::uint64_t word_of(std::uint64_t id, std::size_t at) { return (id + 1) * 0x9e3779b97f4a7c15 + at; }
  void fill(std::uint64_t id) {
    for (std::size_t i = 0; i < kBytes / 8; ++i) words[i] = word_of(id, i);
  }
  bool holds(std::uint64_t id) const {
    for (std::size_t i = 0; i < kBytes / 8; ++i)
      if (words[i] != word_of(id, i)) return false;
    return true;
  }
};

template <std::size_t kBytes>
hl::far::ptr<Known<kBytes>> make_known(std::uint64_t id) {
  auto made = hl::far::make<Known<kBytes>>();
  hl::far::scope held;
  made.deref_mut(held)->fill(id);
  return made;
}

// When all objects have ended: an evacuator may have some in hand that it was about to write. A minute at most.
inline void wait_until_nothing_is_far() {
  const FarLog& far = current_heap()->far();
  for (const std::uint64_t end = now_ns() + 60'000'000'000; now_ns() < end; sched_yield())
    if (far.live_bytes() == 0 && far.large_pages() == 0) return;
}

// Makes room until at least `count` objects have become far, or it takes ten seconds too long.
inline bool wait_until_left(std::uint64_t count) {
  for (const std::uint64_t end = now_ns() + 60'000'000'000; now_ns() < end; sched_yield())
    if (current_heap()->figures().left.load() >= count) return true;
  return false;
}

}  // namespace hinterland::object::testing
