// Random operations on far objects against what they must hold, by several threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "object/test_support.hpp"

namespace hinterland::object::testing {

#ifdef __SANITIZE_THREAD__
inline constexpr int kStepsShare = 8;  // of the steps, for all is slower by as much
#else
inline constexpr int kStepsShare = 1;
#endif

// One thread's objects of one size, and what they hold.
template <std::size_t kBytes>
class Model {
 public:
  Model(std::uint64_t seed, std::size_t count) : random_(seed), items_(count), ids_(count) {}

  std::size_t wrong() const { return wrong_; }

  void step() {
    const std::size_t at = random_() % items_.size();
    const std::uint64_t what = random_() % 100;
    if (!items_[at]) return begin(at);
    if (what < 45) return look(at);
    if (what < 60) return change(at);
    if (what < 70) return exchange(at, random_() % items_.size());
    if (what < 80) return items_[at].reset();
    if (what < 90) return hold_several(at);
    if (what < 95) return move_all();
    hl::far::prefetch(&items_[at], std::min<std::size_t>(16, items_.size() - at));
  }
  void check_all() {
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i]) look(i);
  }

 private:
  using Item = Known<kBytes>;
  void guarded(auto&& body) {
    try {
      body();
    } catch (const hl::far::object_lost&) {
      // only of failing devices; tried again, it may be had
    }
  }
  void begin(std::size_t at) {
    ids_[at] = random_();
    guarded([&] { items_[at] = make_known<kBytes>(ids_[at]); });
  }
  void look(std::size_t at) {
    guarded([&] {
      hl::far::scope held;
      wrong_ += !items_[at].deref(held)->holds(ids_[at]);
    });
  }
  void change(std::size_t at) {
    guarded([&] {
      hl::far::scope held;
      Item* item = items_[at].deref_mut(held);
      wrong_ += !item->holds(ids_[at]);
      item->fill(ids_[at] = random_());
    });
  }
  void exchange(std::size_t at, std::size_t other) {
    std::swap(items_[at], items_[other]);
    std::swap(ids_[at], ids_[other]);
  }
  void hold_several(std::size_t at) {
    guarded([&] {
      hl::far::scope outer;
      std::vector<std::pair<const Item*, std::uint64_t>> held;
      for (std::size_t i = at; i < std::min(at + 8, items_.size()); ++i)
        if (items_[i]) held.emplace_back(items_[i].deref(outer), ids_[i]);
      for (auto [item, id] : held) wrong_ += !item->holds(id);
    });
  }
  void move_all() {
    std::vector<hl::far::ptr<Item>> others(items_.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(64, items_.size()); ++i) others[i] = std::move(items_[i]);
    for (std::size_t i = 0; i < std::min<std::size_t>(64, items_.size()); ++i) items_[i] = std::move(others[i]);
  }

  std::mt19937_64 random_;
  std::vector<hl::far::ptr<Item>> items_;
  std::vector<std::uint64_t> ids_;
  std::size_t wrong_ = 0;
};

// Four threads with objects of four sizes, of `heap`, and then their end.
inline void run_objects_model(HeapForTest& heap, int steps) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      Model<64> small(seed + thread, 60'000);
      Model<520> middle(seed + thread + 100, 6'000);
      Model<6000> large(seed + thread + 200, 400);
      Model<150'000> spans(seed + thread + 300, 12);
      std::mt19937_64 random(seed + thread + 400);
      for (int step = 0; step < steps / kStepsShare; ++step) {
        const std::uint64_t which = random() % 1000;
        if (which < 800)
          small.step();
        else if (which < 960)
          middle.step();
        else if (which < 995)
          large.step();
        else
          spans.step();
      }
      small.check_all(), middle.check_all(), large.check_all(), spans.check_all();
      wrong += small.wrong() + middle.wrong() + large.wrong() + spans.wrong();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(heap->figures().left.load(), 100u);
  EXPECT_GT(heap->figures().brought.load(), 100u);
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u) << "everything has ended";
  EXPECT_EQ(heap->far().large_pages(), 0u);
}

}  // namespace hinterland::object::testing
