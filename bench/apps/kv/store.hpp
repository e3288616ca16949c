// The cache behind the protocol: keys, values, when they expire, and how much memory they may take. Any thread, any
// fiber; a call may wait for another one's, and parks where a hint parks.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/shard.hpp"

namespace kv {

enum class Mode { set, add, replace, append, prepend, cas };
enum class Stored { stored, not_stored, exists, not_found, too_large, no_memory };

struct Arithmetic {
  enum class Result { done, not_found, not_a_number, no_memory } result;
  std::uint64_t value = 0;
};

class Store {
 public:
  using Clock = std::int64_t (*)();  // seconds since 1970
  static std::int64_t system_clock() { return std::time(nullptr); }

  // limit_bytes: of items, their headers included.
  explicit Store(std::size_t limit_bytes, Clock clock = system_clock);

  // Calls found(const Item&) for a key that is there, and says whether it was; the item may not be kept.
  template <typename Found>
  bool get(std::string_view key, Found&& found) {
    Place place = place_of(key);
    Moment moment = this->moment();
    std::lock_guard lock(place.shard.mutex);
    ++place.shard.counts.gets;
    const Item* item = place.shard.find(key, place.hash, moment);
    if (item == nullptr) return false;
    ++place.shard.counts.hits;
    found(*item);
    return true;
  }
  // expires: as the protocol has it, see deadline(). id: of `cas` alone.
  Stored store(Mode mode, std::string_view key, std::uint32_t flags, std::int64_t expires, std::string_view value,
               std::uint64_t id = 0);
  bool remove(std::string_view key);
  bool touch(std::string_view key, std::int64_t expires);
  // Adds to the decimal number there, modulo 2^64, or takes from it, to 0 at the least.
  Arithmetic add(std::string_view key, std::uint64_t amount, bool down);
  // All that is there now is gone, at once or so many seconds from now.
  void flush(std::int64_t delay);

  Counts counts() const;
  std::size_t limit_bytes() const { return limit_bytes_; }
  std::int64_t now() const { return clock_(); }

 private:
  struct Place {
    Shard& shard;
    std::uint32_t hash;
  };
  Place place_of(std::string_view key);
  Moment moment();
  // The protocol's: 0 never, below 0 at once, up to 30 days from now, above that a time of day.
  std::int64_t deadline(std::int64_t expires) const;
  Stored put(Place place, std::string_view key, std::uint32_t flags, std::int64_t expires, std::string_view head,
             std::string_view tail);

  const std::size_t limit_bytes_;
  const Clock clock_;
  std::vector<std::unique_ptr<Shard>> shards_;  // a power of two of them
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::uint64_t> flushed_before_{0};  // an id
  std::atomic<std::int64_t> flush_at_{0};         // 0: not asked for
};

}  // namespace kv
