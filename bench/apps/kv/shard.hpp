// A part of the store: a hash table, and a clock that says which items have not been used for long.
//
//     buckets: number of the first place --> places: item, hash, next place of the chain --> item
//
// Items alone are large. What is needed to find one, and the byte that says that it was used, lie apart from them: a
// lookup reads one item, and leaves it clean; what is evicted is found without reading items that stay.
#pragma once

#include <hinterland/fiber.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kv/item.hpp"

namespace kv {

// What is alive: items that expire later than now, and have not been flushed.
struct Moment {
  std::int64_t now = 0;              // by the store's clock, seconds
  std::uint64_t flushed_before = 0;  // items with a smaller id are gone
};

struct Counts {
  std::uint64_t items = 0, bytes = 0;  // as it is now; all else since the beginning
  std::uint64_t stored = 0, evictions = 0, expired = 0;
  std::uint64_t gets = 0, hits = 0, sets = 0, touches = 0, touch_hits = 0, deletes = 0, delete_hits = 0;

  void add(const Counts& other);
};

// All but the constructor under `mutex`. A fiber's mutex, because hints may park the fiber that holds it.
class Shard {
 public:
  explicit Shard(std::size_t limit_bytes);  // of items
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // The living item of a key, or nullptr; it counts as used. Until the next call. A dead one is removed.
  Item* find(std::string_view key, std::uint32_t hash, const Moment& moment);
  // A new item in place of the one with that key, its value not filled in; evicts what it needs to. nullptr when
  // there is no memory; then the old one is gone, too.
  Item* put(std::string_view key, std::uint32_t hash, std::size_t value_bytes);
  // What find() has just given.
  void remove(std::uint32_t hash, Item* item);
  // Removes all.
  void clear();

  hl::fibers::mutex mutex;
  Counts counts;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Place {
    Item* item;  // nullptr: free
    std::uint32_t hash;
    std::uint32_t next;  // of the chain, or of the free ones
  };

  std::uint32_t& bucket(std::uint32_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  std::uint32_t place_of(std::string_view key, std::uint32_t hash);
  std::uint32_t place_of(const Item* item, std::uint32_t hash);
  std::uint32_t take_place();
  void drop(std::uint32_t number);
  void grow();
  bool make_room(std::size_t bytes);
  std::uint32_t victim();

  const std::size_t limit_bytes_;
  std::vector<std::uint32_t> buckets_;  // a power of two of them
  std::vector<Place> places_;
  std::vector<std::uint8_t> used_;  // since the hand went by; of each place
  std::uint32_t free_ = kNone;
  std::uint32_t hand_ = 0;
};

}  // namespace kv
