// The store: what is there, what expires, what leaves, and in what order; over a clock of the test's own.
#include "kv/store.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "common/random.hpp"

namespace kv {
namespace {

std::int64_t g_now = 1'700'000'000;
std::int64_t test_clock() { return g_now; }

constexpr std::size_t kRoom = std::size_t{1} << 20;

std::string value_of(Store& store, std::string_view key) {
  std::string value = "(none)";
  store.get(key, [&](const Item& item) { value = item.value(); });
  return value;
}
Stored set(Store& store, std::string_view key, std::string_view value, std::int64_t expires = 0) {
  return store.store(Mode::set, key, 0, expires, value);
}

TEST(KvStore, ExpiresByItsClock) {
  Store store(kRoom, test_clock);
  set(store, "never", "1");
  set(store, "soon", "2", 10);
  set(store, "past", "3", -1);
  set(store, "at", "4", g_now + 60 * 60 * 24 * 31);  // above 30 days: a time of day
  EXPECT_EQ(value_of(store, "soon"), "2");
  EXPECT_EQ(value_of(store, "past"), "(none)");
  g_now += 10;
  EXPECT_EQ(value_of(store, "soon"), "(none)");
  EXPECT_TRUE(store.touch("at", 5));
  g_now += 4;
  EXPECT_EQ(value_of(store, "at"), "4");
  g_now += 1;
  EXPECT_EQ(value_of(store, "at"), "(none)");
  EXPECT_FALSE(store.touch("at", 5));
  EXPECT_EQ(value_of(store, "never"), "1");
  EXPECT_EQ(store.counts().items, 1u);  // the dead are gone when they were looked for
}

TEST(KvStore, FlushesAtOnceAndLater) {
  Store store(kRoom, test_clock);
  set(store, "a", "1");
  store.flush(0);
  EXPECT_EQ(value_of(store, "a"), "(none)");
  set(store, "a", "2");
  store.flush(10);
  EXPECT_EQ(value_of(store, "a"), "2");
  g_now += 9;
  set(store, "b", "3");
  EXPECT_EQ(value_of(store, "b"), "3");
  g_now += 1;
  EXPECT_EQ(value_of(store, "a"), "(none)");
  EXPECT_EQ(value_of(store, "b"), "(none)");
  EXPECT_EQ(store.store(Mode::add, "a", 0, 0, "4"), Stored::stored);
  EXPECT_EQ(value_of(store, "a"), "4");
}

TEST(KvStore, KeepsItsLimitAndWhatIsUsed) {
  Store store(kRoom, test_clock);
  std::string value(1000, 'x');
  ASSERT_EQ(set(store, "used", "kept"), Stored::stored);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(set(store, "key" + std::to_string(i), value), Stored::stored);
    ASSERT_EQ(value_of(store, "used"), "kept") << i;
    ASSERT_LE(store.counts().bytes, kRoom);
  }
  Counts counts = store.counts();
  EXPECT_GT(counts.evictions, 3000u);
  EXPECT_EQ(counts.items + counts.evictions, 5001u);
  EXPECT_GT(counts.bytes, kRoom * 9 / 10);
  EXPECT_EQ(value_of(store, "key4999"), value);
  EXPECT_EQ(value_of(store, "key0"), "(none)");
}

// Where all the others were used, the clock finds nothing unused but what is new, and must not take that.
TEST(KvStore, KeepsWhatIsNew) {
  Store store(kRoom, test_clock);
  std::string value(1000, 'x');
  for (int i = 0; i < 2000; ++i) set(store, "key" + std::to_string(i), value);
  for (int i = 0; i < 2000; ++i) value_of(store, "key" + std::to_string(i));
  for (int i = 0; i < 100; ++i) {
    set(store, "small" + std::to_string(i), "s");
    set(store, "large" + std::to_string(i), value);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(value_of(store, "small" + std::to_string(i)), "s") << i;
}

TEST(KvStore, RefusesWhatIsTooLargeAndKeepsNoOldValue) {
  Store store(4 * kRoom, test_clock);
  set(store, "a", "old");
  EXPECT_EQ(set(store, "a", std::string(kValueBytesMax + 1, 'x')), Stored::too_large);
  EXPECT_EQ(value_of(store, "a"), "(none)");
  EXPECT_EQ(set(store, "a", std::string(kValueBytesMax, 'x')), Stored::stored);
  EXPECT_EQ(store.store(Mode::append, "a", 0, 0, "x"), Stored::too_large);
  EXPECT_EQ(value_of(store, "a").size(), kValueBytesMax);
}

TEST(KvStore, CountsUpAndDown) {
  Store store(kRoom, test_clock);
  set(store, "n", "18446744073709551615");
  EXPECT_EQ(store.add("n", 2, false).value, 1u);
  EXPECT_EQ(store.add("n", 5, true).value, 0u);
  EXPECT_EQ(value_of(store, "n"), "0");
  set(store, "text", "12x");
  EXPECT_EQ(store.add("text", 1, false).result, Arithmetic::Result::not_a_number);
  EXPECT_EQ(store.add("none", 1, false).result, Arithmetic::Result::not_found);
}

// Random steps, held against a map. Nothing is evicted or expires here.
TEST(KvStore, IsAMap) {
  Store store(64 * kRoom, test_clock);
  std::map<std::string, std::string> model;
  apps::Random random(7);
  for (int step = 0; step < 200'000; ++step) {
    std::string key = "k" + std::to_string(random.below(3000));
    std::string value(random.below(200), static_cast<char>('a' + random.below(26)));
    bool there = model.count(key) != 0;
    switch (random.below(7)) {
      case 0:
      case 1:
        ASSERT_EQ(set(store, key, value), Stored::stored);
        model[key] = value;
        break;
      case 2:
        ASSERT_EQ(store.store(Mode::add, key, 0, 0, value), there ? Stored::not_stored : Stored::stored);
        if (!there) model[key] = value;
        break;
      case 3:
        ASSERT_EQ(store.store(Mode::prepend, key, 0, 0, "<"), there ? Stored::stored : Stored::not_stored);
        if (there) model[key] = "<" + model[key];
        break;
      case 4:
        ASSERT_EQ(store.remove(key), there);
        model.erase(key);
        break;
      default:
        ASSERT_EQ(value_of(store, key), there ? model[key] : "(none)");
    }
  }
  EXPECT_EQ(store.counts().items, model.size());
}

// Each value tells its key: no thread may ever see another's, or half of one.
TEST(KvStore, ServesThreadsWhileItEvicts) {
  Store store(4 * kRoom, test_clock);
  std::atomic<std::uint64_t> wrong{0}, hits{0};
  auto work = [&](unsigned thread) {
    apps::Random random(thread);
    for (int step = 0; step < 30'000; ++step) {
      std::string key = "key" + std::to_string(random.below(8000));
      std::string wanted;
      while (wanted.size() < 700) wanted += key;
      if (random.below(3) == 0) {
        set(store, key, wanted);
      } else if (store.get(key, [&](const Item& item) { wrong += item.value() != wanted; })) {
        ++hits;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(hits, 1000u);
  EXPECT_GT(store.counts().evictions, 100u);
}

}  // namespace
}  // namespace kv
