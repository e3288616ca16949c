// A far hash map for many threads: the index is local, keys and values lie in far objects of their own (AIFM, OSDI
// 2020, 6).
//
//     hl::far::unordered_map<std::uint64_t, record> records;
//     records.insert_or_assign(7, {1, 2});
//     if (std::optional<record> found = records.find(7)) ...          // a copy
//     records.visit(7, [](record& there) { there.count += 1; });      // in place
//
// Local are 16 bytes an entry, filled to three quarters at most, and the hash decides so much that a look-up brings
// hardly ever another entry's object. Keys and values are trivially copyable.
//
// Threads: every call may be made by any thread at any time, but move, clear and the destructor. The index is cut
// into shards with a lock each; what only looks locks for sharing, also while an object is brought. Functions given
// to visit() and for_each() must not call the same map, nor wait for a thread that forks: a fork waits for them.
// Errors: as ptr.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "hinterland/object.hpp"

namespace hl::far {

template <typename Key, typename Value, typename Hash = std::hash<Key>, typename Equal = std::equal_to<Key>>
class unordered_map {
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>,
                "keys and values of a far map are trivially copyable: keep a far::ptr to what is not");

 public:
  using key_type = Key;
  using mapped_type = Value;

  explicit unordered_map(Hash hash = Hash(), Equal equal = Equal())
      : shards_(new std::array<shard, shards>), hash_(std::move(hash)), equal_(std::move(equal)) {}

  std::size_t size() const {
    std::size_t sum = 0;
    for (const shard& each : *shards_) sum += each.used.load(std::memory_order_relaxed);
    return sum;
  }
  bool empty() const { return size() == 0; }
  bool contains(const Key& key) const {
    return look(key, [](const Value&) {});
  }
  std::optional<Value> find(const Key& key) const {
    std::optional<Value> found;
    look(key, [&](const Value& value) { found = value; });
    return found;
  }
  // Calls function(const Value&) while others may look at it too. False: there is none.
  template <typename Function>
  bool visit(const Key& key, Function&& function) const {
    return look(key, std::forward<Function>(function));
  }
  // Calls function(Value&) while nobody else has it. False: there is none.
  template <typename Function>
  bool visit(const Key& key, Function&& function) {
    const std::uint64_t hash = mixed(key);
    shard& in = shard_of(hash);
    const detail::undivided whole;
    const std::unique_lock lock(in.mutex);
    scope held;
    const std::size_t at = in.find(hash, [&](const ptr<entry>& p) { return equal_(p.deref(held)->key, key); });
    if (at == absent) return false;
    function(in.slots[at].where.deref_mut(held)->value);
    return true;
  }
  // True: it was not there. Otherwise it stays as it is.
  bool insert(const Key& key, const Value& value) { return put(key, value, false); }
  bool insert_or_assign(const Key& key, const Value& value) { return put(key, value, true); }
  // True: it was there.
  bool erase(const Key& key) {
    const std::uint64_t hash = mixed(key);
    shard& in = shard_of(hash);
    const detail::undivided whole;
    const std::unique_lock lock(in.mutex);
    std::size_t at;
    {
      scope held;
      at = in.find(hash, [&](const ptr<entry>& p) { return equal_(p.deref(held)->key, key); });
    }
    if (at == absent) return false;
    in.remove(at);
    return true;
  }
  // Calls function(const Key&, const Value&) for all that are there throughout, in no order; for those that come or
  // go meanwhile, or not.
  template <typename Function>
  void for_each(Function&& function) const {
    for (const shard& in : *shards_) {
      const detail::undivided whole;
      const std::shared_lock lock(in.mutex);
      for (std::size_t i = 0; i < in.slots.size(); ++i) {
        if (in.slots[i].hash == 0) continue;
        scope held;
        const entry* found = in.slots[i].where.deref(held, use::nontemporal);
        function(found->key, found->value);
      }
    }
  }
  void clear() {
    for (shard& in : *shards_) {
      const std::unique_lock lock(in.mutex);
      in.slots.clear();
      in.used.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t shards = 64;  // threads of a large machine hardly meet
  static constexpr std::size_t absent = static_cast<std::size_t>(-1);

  struct entry {
    Key key;
    Value value;
  };
  struct slot {
    std::uint64_t hash = 0;  // 0: free
    ptr<entry> where;
  };

  // Open addressing; what is removed leaves no mark, for those behind it move up.
  struct alignas(64) shard {
    mutable std::shared_mutex mutex;   // of what follows
    std::vector<slot> slots;           // a power of two, or none
    std::atomic<std::size_t> used{0};  // relaxed: size() alone reads it without the lock

    std::size_t mask() const { return slots.size() - 1; }
    // The shard was chosen by the lowest bits.
    std::size_t home(std::uint64_t hash) const { return (hash >> 6) & mask(); }

    template <typename Same>
    std::size_t find(std::uint64_t hash, const Same& same) const {
      if (slots.empty()) return absent;
      for (std::size_t at = home(hash); slots[at].hash != 0; at = (at + 1) & mask())
        if (slots[at].hash == hash && same(slots[at].where)) return at;
      return absent;
    }
    void add(std::uint64_t hash, ptr<entry> where) {
      const std::size_t count = used.load(std::memory_order_relaxed);
      if ((count + 1) * 4 > slots.size() * 3) grow();
      place(hash, std::move(where));
      used.store(count + 1, std::memory_order_relaxed);
    }
    void place(std::uint64_t hash, ptr<entry> where) {
      std::size_t at = home(hash);
      while (slots[at].hash != 0) at = (at + 1) & mask();
      slots[at].hash = hash;
      slots[at].where = std::move(where);
    }
    void grow() {
      std::vector<slot> before(slots.empty() ? 16 : slots.size() * 2);
      before.swap(slots);
      for (slot& each : before)
        if (each.hash != 0) place(each.hash, std::move(each.where));
    }
    void remove(std::size_t hole) {
      slots[hole].where.reset();
      for (std::size_t at = (hole + 1) & mask(); slots[at].hash != 0; at = (at + 1) & mask()) {
        // It may fill the hole unless its home lies behind it.
        if (((at - home(slots[at].hash)) & mask()) < ((at - hole) & mask())) continue;
        slots[hole].hash = slots[at].hash;
        slots[hole].where = std::move(slots[at].where);
        hole = at;
      }
      slots[hole].hash = 0;
      used.store(used.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    }
  };

  // std::hash of integers is the integer: mixed, so that every bit decides about shard, home and equality.
  std::uint64_t mixed(const Key& key) const {
    std::uint64_t hash = static_cast<std::uint64_t>(hash_(key));
    hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;
  }
  shard& shard_of(std::uint64_t hash) const { return (*shards_)[hash % shards]; }

  template <typename Function>
  bool look(const Key& key, Function&& function) const {
    const std::uint64_t hash = mixed(key);
    const shard& in = shard_of(hash);
    const detail::undivided whole;
    const std::shared_lock lock(in.mutex);
    scope held;
    const std::size_t at = in.find(hash, [&](const ptr<entry>& p) { return equal_(p.deref(held)->key, key); });
    if (at == absent) return false;
    function(in.slots[at].where.deref(held)->value);
    return true;
  }

  bool put(const Key& key, const Value& value, bool assign) {
    const std::uint64_t hash = mixed(key);
    shard& in = shard_of(hash);
    const detail::undivided whole;
    const std::unique_lock lock(in.mutex);
    {
      scope held;
      const std::size_t at = in.find(hash, [&](const ptr<entry>& p) { return equal_(p.deref(held)->key, key); });
      if (at != absent) {
        if (assign) in.slots[at].where.deref_mut(held)->value = value;
        return false;
      }
    }
    in.add(hash, make<entry>(entry{key, value}));
    return true;
  }

  std::unique_ptr<std::array<shard, shards>> shards_;
  Hash hash_;
  Equal equal_;
};

}  // namespace hl::far
