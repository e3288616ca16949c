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
// into shards with a lock each; what only looks locks for sharing. No lock is held while an object is brought from a
// device that takes its time: a fiber parks meanwhile (object.hpp), and others use the shard; but for_each() holds it
// for sharing, and blocks its thread. Functions given to visit() and for_each() may look into other maps, and block
// their thread meanwhile (glibc lets those who share a lock in before those who want it alone). They must not call
// the same map, nor wait for a thread that does, nor fork, nor wait for a thread that forks: a fork waits for them.
// Errors: as ptr; the entry stays, and may be tried again.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
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
    return with<std::unique_lock<std::shared_mutex>>(
        key, [&](shard&, std::uint64_t, const found_entry& there, const scope& held) {
          if (there.is == match::yes) function(there.where->deref_mut(held)->value);
          return there.is == match::yes;
        });
  }
  // True: it was not there. Otherwise it stays as it is.
  bool insert(const Key& key, const Value& value) { return put(key, value, false); }
  bool insert_or_assign(const Key& key, const Value& value) { return put(key, value, true); }
  // True: it was there.
  bool erase(const Key& key) {
    return with<std::unique_lock<std::shared_mutex>>(
        key, [](shard& in, std::uint64_t, const found_entry& there, const scope&) {
          if (there.is == match::yes) in.remove(there);
          return there.is == match::yes;
        });
  }
  // Calls function(const Key&, const Value&) for all that are there throughout, in no order; for those that come or
  // go meanwhile, or not.
  template <typename Function>
  void for_each(Function&& function) const {
    for (const shard& in : *shards_) {
      detail::wait_for_memory();
      const detail::undivided whole;
      const std::shared_lock lock(in.mutex);
      // Memory is waited for once a batch: a fiber that is parked beside this one keeps it from coming.
      const auto show = [&](const ptr<entry>& where) {
        const scope held{detail::at_once()};
        const entry* there = where.deref(held, use::nontemporal);
        function(there->key, there->value);
      };
      for (std::size_t at = 0; at < in.slots.size(); ++at) {
        if (at % together == 0) {
          detail::look_ahead next(use::nontemporal);
          const std::size_t end = std::min(at + together, in.slots.size());
          for (std::size_t ahead = at; ahead < end; ++ahead) next.add(in.slots[ahead].where.far_word());
        }
        if (in.slots[at].where) show(in.slots[at].where);
      }
      for (const std::unique_ptr<in_flight>& each : in.flights) show(each->where);
    }
  }
  void clear() {
    for (shard& in : *shards_) {
      const detail::undivided whole;
      const std::unique_lock lock(in.mutex);
      in.slots.clear();
      in.flights.clear();
      in.used.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t shards = 64;    // threads of a large machine hardly meet
  static constexpr std::size_t together = 64;  // slots whose objects for_each() brings with one wait
  static constexpr std::size_t absent = static_cast<std::size_t>(-1);

  struct entry {
    Key key;
    Value value;
  };
  struct slot {
    std::uint64_t hash = 0;  // 0: free
    ptr<entry> where;        // null: in flight
  };
  // An entry that is brought while nobody holds the lock for it. Its pointer lies here meanwhile, where neither
  // growth nor what is erased moves it. Which slot is whose does not matter among slots of one hash without a
  // pointer.
  struct in_flight {
    std::uint64_t hash;
    pid_t process;            // whose users these are: a child of fork() has none of them
    std::uint32_t users = 0;  // who bring it; the last puts it back
    bool erased = false;      // no slot is its own any more: the last user ends it
    ptr<entry> where{};
  };
  // away: whether it is the entry is not known before it is brought.
  enum class match { no, yes, away };
  struct found_entry {
    match is = match::no;
    std::size_t slot = absent;
    ptr<entry>* where = nullptr;
    in_flight* flight = nullptr;  // that it lies in
  };

  // Open addressing; what is removed leaves no mark, for those behind it move up.
  struct alignas(64) shard {
    mutable std::shared_mutex mutex;  // of what follows
    std::vector<slot> slots;          // a power of two, or none
    std::vector<std::unique_ptr<in_flight>> flights{};
    std::atomic<std::size_t> used{0};  // relaxed: size() alone reads it without the lock

    std::size_t mask() const { return slots.size() - 1; }
    // The shard was chosen by the lowest bits.
    std::size_t home(std::uint64_t hash) const { return (hash >> 6) & mask(); }

    template <typename Look>
    __attribute__((always_inline)) found_entry find(std::uint64_t hash, const Look& look) {
      if (slots.empty()) return {};
      std::size_t vacant = absent;
      for (std::size_t at = home(hash); slots[at].hash != 0; at = (at + 1) & mask()) {
        if (slots[at].hash != hash) continue;
        if (!slots[at].where)
          vacant = at;
        else if (const match is = look(slots[at].where); is != match::no)
          return {is, at, &slots[at].where, nullptr};
      }
      return vacant == absent ? found_entry() : find_in_flight(hash, vacant, look);
    }
    template <typename Look>
    __attribute__((noinline)) found_entry find_in_flight(std::uint64_t hash, std::size_t vacant, const Look& look) {
      for (const std::unique_ptr<in_flight>& each : flights)
        if (each->hash == hash)
          if (const match is = look(each->where); is != match::no) return {is, vacant, &each->where, each.get()};
      return {};
    }
    void add(std::uint64_t hash, ptr<entry>&& where) {
      const std::size_t count = used.load(std::memory_order_relaxed);
      if ((count + 1) * 4 > slots.size() * 3) grow();
      place(hash, std::move(where));
      used.store(count + 1, std::memory_order_relaxed);
    }
    void place(std::uint64_t hash, ptr<entry>&& where) {
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
    // In flight from now on, for one user more.
    in_flight* take_out(std::uint64_t hash, const found_entry& there) {
      in_flight* flight = there.flight;
      if (flight == nullptr) {
        flights.push_back(std::make_unique<in_flight>(in_flight{.hash = hash, .process = getpid()}));
        flight = flights.back().get();
        flight->where = std::move(*there.where);
      }
      if (!is_used(*flight)) flight->users = 0, flight->process = getpid();
      ++flight->users;
      return flight;
    }
    // One user less. The flight, when it is over.
    std::unique_ptr<in_flight> put_back(in_flight* flight) {
      if (--flight->users != 0) return nullptr;
      if (flight->erased) return std::unique_ptr<in_flight>(flight);
      std::size_t at = home(flight->hash);
      while (slots[at].hash != flight->hash || slots[at].where) at = (at + 1) & mask();
      slots[at].where = std::move(flight->where);
      return end_flight(flight);
    }
    static bool is_used(const in_flight& flight) { return flight.users != 0 && flight.process == getpid(); }
    std::unique_ptr<in_flight> end_flight(const in_flight* flight) {
      auto at = flights.begin();
      while (at->get() != flight) ++at;
      std::swap(*at, flights.back());
      std::unique_ptr<in_flight> ended = std::move(flights.back());
      flights.pop_back();
      return ended;
    }
    void remove(const found_entry& there) {
      if (there.flight != nullptr) {
        std::unique_ptr<in_flight> ended = end_flight(there.flight);
        ended->erased = true;
        if (is_used(*ended)) static_cast<void>(ended.release());  // its users' now
      }
      remove_slot(there.slot);
    }
    void remove_slot(std::size_t hole) {
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

  // Brings an entry without the lock, and keeps it local from then on.
  class flight_user {
   public:
    flight_user(shard& in, in_flight* flight) : in_(in), flight_(flight) {}
    ~flight_user() {
      if (pinned_.object != nullptr) detail::the_runtime()->unpin(pinned_.object);
      std::unique_ptr<in_flight> ended;  // without the lock
      const detail::undivided whole;
      const std::unique_lock lock(in_.mutex);
      ended = in_.put_back(flight_);
    }
    flight_user(const flight_user&) = delete;
    flight_user& operator=(const flight_user&) = delete;

    void bring() {
      const scope held;
      flight_->where.deref(held);
      pinned_.where = flight_->where.far_word();
      detail::the_runtime()->pin_now(&pinned_);  // at once, within the scope. Nobody waits for a pin, as for a scope
    }

   private:
    shard& in_;
    in_flight* flight_;
    detail::arrival pinned_{};
  };

  // What `step` gives, which is called with the lock, and with the entry local if there is one.
  template <typename Lock, typename Step>
  bool with(const Key& key, Step&& step) const {
    const std::uint64_t hash = mixed(key);
    shard& in = shard_of(hash);
    std::optional<flight_user> brings;
    for (;;) {
      if (!brings) detail::wait_for_memory();  // once it is there, it is pinned: nobody's region is kept for long
      {
        const detail::undivided whole;
        const Lock lock(in.mutex);
        const scope held{detail::at_once()};
        const found_entry there = find(in, hash, key, held, whole);
        if (there.is != match::away) [[likely]]
          return step(in, hash, there, held);
      }
      bring(in, hash, key, brings);
    }
  }
  // In another map's step it blocks: who looks from that one into this one holds both locks for sharing, and none may
  // wait for one alone.
  __attribute__((always_inline)) found_entry find(shard& in, std::uint64_t hash, const Key& key, const scope& held,
                                                  const detail::undivided& whole) const {
    return in.find(hash, [&](const ptr<entry>& where) {
      const entry* there = where.deref_at_once(held);
      if (there == nullptr && whole.is_nested()) [[unlikely]]
        there = where.deref(held);
      if (there == nullptr) return match::away;
      return equal_(there->key, key) ? match::yes : match::no;
    });
  }
  __attribute__((noinline)) void bring(shard& in, std::uint64_t hash, const Key& key,
                                       std::optional<flight_user>& brings) const {
    brings.reset();
    {
      const detail::undivided whole;
      const std::unique_lock lock(in.mutex);
      const scope held{detail::at_once()};
      const found_entry there = find(in, hash, key, held, whole);
      if (there.is != match::away) return;
      brings.emplace(in, in.take_out(hash, there));
    }
    brings->bring();
  }

  template <typename Function>
  bool look(const Key& key, Function&& function) const {
    return with<std::shared_lock<std::shared_mutex>>(
        key, [&](shard&, std::uint64_t, const found_entry& there, const scope& held) {
          if (there.is == match::yes) function(std::as_const(*there.where).deref(held)->value);
          return there.is == match::yes;
        });
  }

  bool put(const Key& key, const Value& value, bool assign) {
    const auto try_put = [&](ptr<entry>* fresh) {
      return with<std::unique_lock<std::shared_mutex>>(
          key, [&](shard& in, std::uint64_t hash, const found_entry& there, const scope& held) {
            if (there.is == match::yes && assign) there.where->deref_mut(held)->value = value;
            if (there.is == match::yes || fresh == nullptr) return there.is == match::yes;
            in.add(hash, std::move(*fresh));
            return false;
          });
    };
    if (try_put(nullptr)) return false;
    ptr<entry> fresh = make<entry>(entry{key, value});  // without the lock: it may wait for memory
    return !try_put(&fresh);
  }

  std::unique_ptr<std::array<shard, shards>> shards_;
  Hash hash_;
  Equal equal_;
};

}  // namespace hl::far
