// A far list against std::list, by random operations with little local memory; and objects with several owners.
#include <algorithm>
#include <barrier>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/object_list.hpp"
#include "hinterland/object_shared.hpp"
#include "object/test_support.hpp"

namespace hinterland::object::testing {
namespace {

// Wide enough that a chunk holds few: chunks are cut and joined all the time.
template <std::size_t kWords>
struct Element {
  std::uint64_t words[kWords];
  explicit Element(std::uint64_t id = 0) {
    for (std::size_t i = 0; i < kWords; ++i) words[i] = id + i;
  }
  std::uint64_t id() const {
    for (std::size_t i = 0; i < kWords; ++i)
      if (words[i] != words[0] + i) return ~std::uint64_t{0};
    return words[0];
  }
};

template <std::size_t kWords>
class ListModel {
 public:
  using T = Element<kWords>;
  explicit ListModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    const std::uint64_t id = random_();
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        return far_.push_back(T(id)), model_.push_back(id);
      case 3:
      case 4:
        return far_.push_front(T(id)), model_.push_front(id);
      case 5:
      case 6:
      case 7:
        return insert_run(id);
      case 8:
        return model_.empty() ? void() : (far_.pop_back(), model_.pop_back());
      case 9:
        return model_.empty() ? void() : (far_.pop_front(), model_.pop_front());
      case 10:
        return erase_some();
      case 11:
        return change(id);
      case 12:
        return far_.reverse(), model_.reverse();
      case 13:
        return split_and_splice();
      case 14:
        return move_within();
      default:
        return merge_sorted();
    }
  }
  void check() {
    ASSERT_EQ(far_.size(), model_.size());
    auto at = model_.begin();
    for (const T& each : far_.walk()) ASSERT_EQ(each.id(), *at++);
    ASSERT_EQ(at, model_.end());
    auto back = model_.rbegin();
    for (auto i = far_.end(); i != far_.begin();) ASSERT_EQ((*--i).id(), *back++);
  }
  std::size_t size() const { return model_.size(); }

 private:
  std::size_t somewhere() { return model_.empty() ? 0 : random_() % (model_.size() + 1); }
  void insert_run(std::uint64_t id) {
    const std::size_t where = somewhere();
    auto far = std::next(far_.begin(), static_cast<std::ptrdiff_t>(where));
    auto model = std::next(model_.begin(), static_cast<std::ptrdiff_t>(where));
    for (std::uint64_t i = 0; i < 1 + id % 8; ++i) {
      far = far_.insert(far, T(id + i));
      model = model_.insert(model, id + i);
      ASSERT_EQ((*far).id(), *model);
      if (i % 2 == 0) ++far, ++model;
    }
  }
  void erase_some() {
    const std::size_t where = somewhere();
    auto far = std::next(far_.begin(), static_cast<std::ptrdiff_t>(where));
    auto model = std::next(model_.begin(), static_cast<std::ptrdiff_t>(where));
    for (std::uint64_t left = random_() % 12; left != 0 && model != model_.end(); --left) {
      far = far_.erase(far);
      model = model_.erase(model);
    }
    if (model != model_.end()) {
      ASSERT_EQ((*far).id(), *model);
    } else {
      ASSERT_EQ(far, far_.end());
    }
    const std::size_t count =
        std::min<std::size_t>(random_() % 20, static_cast<std::size_t>(std::distance(model, model_.end())));
    if (random_() % 2 == 0) return;
    far_.erase(far, std::next(far, static_cast<std::ptrdiff_t>(count)));
    model_.erase(model, std::next(model, static_cast<std::ptrdiff_t>(count)));
  }
  void change(std::uint64_t id) {
    if (model_.empty()) return;
    const auto where = static_cast<std::ptrdiff_t>(random_() % model_.size());
    std::next(far_.begin(), where).set(T(id));
    *std::next(model_.begin(), where) = id;
    hl::far::scope held;
    ASSERT_EQ(std::next(far_.begin(), where).get(held).id(), id);
  }
  // And back, at another place.
  void split_and_splice() {
    const auto where = static_cast<std::ptrdiff_t>(somewhere());
    hl::far::list<T> behind = far_.split(std::next(far_.begin(), where));
    std::list<std::uint64_t> model;
    model.splice(model.end(), model_, std::next(model_.begin(), where), model_.end());
    ASSERT_EQ(behind.size(), model.size());
    ASSERT_EQ(far_.size(), model_.size());
    const auto to = static_cast<std::ptrdiff_t>(somewhere());
    if (!model.empty()) {
      far_.splice(std::next(far_.begin(), to), behind, behind.begin());
      model_.splice(std::next(model_.begin(), to), model, model.begin());
    }
    far_.splice(std::next(far_.begin(), to), behind);
    model_.splice(std::next(model_.begin(), to), model);
    ASSERT_TRUE(behind.empty());
  }
  void move_within() {
    if (model_.size() < 2) return;
    std::size_t places[3] = {random_() % model_.size(), random_() % model_.size(), random_() % model_.size()};
    std::sort(std::begin(places), std::end(places));
    const bool forward = random_() % 2 == 0;
    const std::size_t first = places[forward ? 0 : 1], last = places[forward ? 1 : 2], to = places[forward ? 2 : 0];
    if (to == first) return;  // among what moves
    const auto place = [](auto& list, std::size_t at) {
      return std::next(list.begin(), static_cast<std::ptrdiff_t>(at));
    };
    far_.splice(place(far_, to), far_, place(far_, first), place(far_, last));
    model_.splice(place(model_, to), model_, place(model_, first), place(model_, last));
  }
  void merge_sorted() {
    hl::far::list<T> far[2];
    std::list<std::uint64_t> model[2];
    for (int side = 0; side < 2; ++side) {
      for (std::uint64_t count = random_() % 60; count != 0; --count) model[side].push_back(random_() % 1000 * 100);
      model[side].sort();
      for (const std::uint64_t id : model[side]) far[side].push_back(T(id));
      if (random_() % 2 == 0) continue;
      far[side].reverse(), model[side].reverse(), far[side].reverse(), model[side].reverse();
    }
    far[0].merge(far[1], [](const T& a, const T& b) { return a.id() < b.id(); });
    model[0].merge(model[1]);
    ASSERT_TRUE(far[1].empty());
    far_.splice(far_.begin(), far[0]);
    model_.splice(model_.begin(), model[0]);
  }

  std::mt19937_64 random_;
  hl::far::list<T> far_;
  std::list<std::uint64_t> model_;
};

template <std::size_t kWords>
void run_model(int steps) {
  const std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  HeapForTest heap;
  ListModel<kWords> model(seed);
  for (int step = 0; step < steps; ++step) {
    model.step();
    if (step % (steps / 8) == 0) model.check();
    if (::testing::Test::HasFatalFailure()) return;
  }
  model.check();
}

TEST(FarList, HoldsWhatAListHolds) { run_model<1>(2000); }
TEST(FarList, OfFewElementsAChunk) { run_model<60>(2000); }
TEST(FarList, OfOneElementAChunk) { run_model<200>(1000); }

// AIFM's list of more than there is room for: there and back, with read-ahead and without.
TEST(FarList, MoreThanThereIsRoomFor) {
  static_assert(std::bidirectional_iterator<hl::far::list<std::uint64_t>::iterator>);
  HeapForTest heap;
  hl::far::list<std::uint64_t> list(hl::far::use::nontemporal);
  constexpr std::uint64_t kElements = 3'000'000;
  for (std::uint64_t i = 0; i < kElements; ++i) i % 2 == 0 ? list.push_back(i) : list.push_front(i);
  for (std::uint64_t& each : list.walk_mut()) each += 5;
  std::uint64_t sum = 0;
  for (const std::uint64_t& each : list.walk(hl::far::use::nontemporal)) sum += each;
  EXPECT_EQ(sum, kElements * (kElements - 1) / 2 + 5 * kElements);
  list.reverse();
  EXPECT_EQ(list.front(), kElements - 2 + 5);
  EXPECT_EQ(list.back(), kElements - 1 + 5);
  EXPECT_GT(heap->figures().brought.load(), 1000u);
  list.clear();
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u);
}

struct Ends {
  static inline std::atomic<int> ended{0};
  std::uint64_t value = 0;
  hl::far::ptr<int> inner;
  explicit Ends(std::uint64_t with) : value(with), inner(hl::far::make<int>(static_cast<int>(with))) {}
  Ends(Ends&&) = default;
  ~Ends() { ++ended; }
};
struct Holder {
  hl::far::shared_ptr<Ends> shared;
  std::uint64_t words[7];
};

}  // namespace
}  // namespace hinterland::object::testing

template <>
struct hl::far::holds<hinterland::object::testing::Ends>
    : hl::far::pointers<&hinterland::object::testing::Ends::inner> {};
template <>
struct hl::far::holds<hinterland::object::testing::Holder> : hl::far::pointers<> {};

namespace hinterland::object::testing {
namespace {

TEST(FarShared, EndsWithTheLastOwner) {
  HeapForTest heap;
  Ends::ended = 0;
  auto one = hl::far::make_shared<Ends>(7u);
  EXPECT_EQ(one.use_count(), 1u);
  auto two = one;
  EXPECT_TRUE(one == two);
  EXPECT_EQ(two.use_count(), 2u);
  auto three = std::move(one);
  EXPECT_FALSE(one);
  EXPECT_EQ(one.use_count(), 0u);
  two = nullptr;
  EXPECT_EQ(three.use_count(), 1u);
  {
    hl::far::scope held;
    three.deref_mut(held)->value = 8;
    EXPECT_EQ(three.deref(held)->value, 8u);
  }
  three = three;
  EXPECT_EQ(Ends::ended.load(), 0);
  three.reset();
  EXPECT_EQ(Ends::ended.load(), 1);
  hl::far::ptr<Known<64>> alone = make_known<64>(3);
  const hl::far::shared_ptr<Known<64>> taken(std::move(alone));
  EXPECT_FALSE(alone);
  EXPECT_TRUE(taken.read().holds(3));
  EXPECT_FALSE(hl::far::shared_ptr<int>(hl::far::ptr<int>()));
}

// Owners that lie in far objects, and in several threads, while what they own comes and goes.
TEST(FarShared, OwnersInFarObjectsAndThreads) {
  HeapForTest heap;
  Ends::ended = 0;
  constexpr std::uint64_t kShared = 30'000, kOwners = 4;
  std::vector<hl::far::shared_ptr<Ends>> all;
  for (std::uint64_t i = 0; i < kShared; ++i) all.push_back(hl::far::make_shared<Ends>(i));
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  std::barrier all_made(kOwners);
  for (std::uint64_t thread = 0; thread < kOwners; ++thread)
    threads.emplace_back([&, own = all] {
      std::vector<hl::far::ptr<Holder>> holders;
      for (std::uint64_t i = 0; i < kShared; ++i) {
        holders.push_back(hl::far::make<Holder>());
        hl::far::scope held;
        holders.back().deref_mut(held)->shared = own[i];
      }
      // All of them are more than fits, so that much leaves before it is read, in whatever order the threads run.
      all_made.arrive_and_wait();
      while (heap->memory().used() > heap->memory().limit()) sched_yield();  // or the test's time is over
      for (std::uint64_t i = 0; i < kShared; ++i) {
        hl::far::scope held;
        const Ends* there = holders[i].deref(held)->shared.deref(held);
        wrong += there->value != i || *there->inner.deref(held) != static_cast<int>(i);
      }
    });
  all.clear();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(Ends::ended.load(), static_cast<int>(kShared)) << "each once, with the last of its owners";
  EXPECT_GT(heap->figures().left.load(), kShared);
  wait_until_nothing_is_far();
  EXPECT_EQ(heap->far().live_bytes(), 0u);
}

}  // namespace
}  // namespace hinterland::object::testing
