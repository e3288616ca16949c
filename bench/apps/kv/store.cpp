#define XXH_INLINE_ALL
#include "kv/store.hpp"

#include <xxhash.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <mutex>

namespace kv {
namespace {

// A shard must hold some of the largest items; more shards than this do not make waiting any rarer.
constexpr std::size_t kShardBytes = std::size_t{8} << 20, kShardsMax = 256;

std::size_t shards_for(std::size_t limit_bytes) {
  std::size_t wanted = limit_bytes / kShardBytes;
  return std::bit_floor(wanted == 0 ? 1 : wanted < kShardsMax ? wanted : kShardsMax);
}

}  // namespace

Store::Store(std::size_t limit_bytes, Clock clock) : limit_bytes_(limit_bytes), clock_(clock) {
  std::size_t shards = shards_for(limit_bytes);
  for (std::size_t i = 0; i < shards; ++i) shards_.push_back(std::make_unique<Shard>(limit_bytes / shards));
}

Store::Place Store::place_of(std::string_view key) {
  std::uint64_t hash = XXH3_64bits(key.data(), key.size());
  return {*shards_[(hash >> 32) & (shards_.size() - 1)], static_cast<std::uint32_t>(hash)};
}

Moment Store::moment() {
  std::int64_t now = clock_(), at = flush_at_.load(std::memory_order_relaxed);
  // Whoever comes first after the time: all that was stored until then goes.
  if (at != 0 && now >= at && flush_at_.compare_exchange_strong(at, 0)) flushed_before_.store(next_id_.load());
  return {now, flushed_before_.load()};
}

std::int64_t Store::deadline(std::int64_t expires) const {
  constexpr std::int64_t kMonth = 60 * 60 * 24 * 30;
  if (expires == 0) return Item::kNever;
  if (expires < 0) return 0;
  return expires <= kMonth ? clock_() + expires : expires;
}

Stored Store::store(Mode mode, std::string_view key, std::uint32_t flags, std::int64_t expires,
                    std::string_view value, std::uint64_t id) {
  Place place = place_of(key);
  Moment moment = this->moment();
  if (value.size() > kValueBytesMax || Item::bytes_for(key.size(), value.size()) > limit_bytes_ / shards_.size()) {
    std::lock_guard lock(place.shard.mutex);
    Item* old = place.shard.find(key, place.hash, moment);
    if (old != nullptr && mode == Mode::set)
      place.shard.remove(place.hash, old);  // no old value after a new one was sent
    return Stored::too_large;
  }
  std::lock_guard lock(place.shard.mutex);
  ++place.shard.counts.sets;
  Item* there = mode == Mode::set ? nullptr : place.shard.find(key, place.hash, moment);
  switch (mode) {
    case Mode::set:
      break;
    case Mode::add:
      if (there != nullptr) return Stored::not_stored;
      break;
    case Mode::replace:
      if (there == nullptr) return Stored::not_stored;
      break;
    case Mode::cas:
      if (there == nullptr) return Stored::not_found;
      if (there->id != id) return Stored::exists;
      break;
    case Mode::append:
    case Mode::prepend: {
      if (there == nullptr) return Stored::not_stored;
      if (there->value_bytes + value.size() > kValueBytesMax) return Stored::too_large;
      std::string old(there->value());
      bool after = mode == Mode::append;
      return put(place, key, there->flags, there->expires, after ? old : value, after ? value : old);
    }
  }
  return put(place, key, flags, deadline(expires), value, {});
}

// Under the shard's mutex. head and tail: the value's two parts, neither of them in the shard.
Stored Store::put(Place place, std::string_view key, std::uint32_t flags, std::int64_t expires, std::string_view head,
                  std::string_view tail) {
  Item* item = place.shard.put(key, place.hash, head.size() + tail.size());
  if (item == nullptr) return Stored::no_memory;
  item->id = next_id_.fetch_add(1);
  item->flags = flags;
  item->expires = expires;
  head.copy(item->value_data(), head.size());
  tail.copy(item->value_data() + head.size(), tail.size());
  return Stored::stored;
}

bool Store::remove(std::string_view key) {
  Place place = place_of(key);
  Moment moment = this->moment();
  std::lock_guard lock(place.shard.mutex);
  ++place.shard.counts.deletes;
  Item* item = place.shard.find(key, place.hash, moment);
  if (item == nullptr) return false;
  ++place.shard.counts.delete_hits;
  place.shard.remove(place.hash, item);
  return true;
}

bool Store::touch(std::string_view key, std::int64_t expires) {
  Place place = place_of(key);
  Moment moment = this->moment();
  std::lock_guard lock(place.shard.mutex);
  ++place.shard.counts.touches;
  Item* item = place.shard.find(key, place.hash, moment);
  if (item == nullptr) return false;
  ++place.shard.counts.touch_hits;
  item->expires = deadline(expires);
  return true;
}

Arithmetic Store::add(std::string_view key, std::uint64_t amount, bool down) {
  Place place = place_of(key);
  Moment moment = this->moment();
  std::lock_guard lock(place.shard.mutex);
  const Item* item = place.shard.find(key, place.hash, moment);
  if (item == nullptr) return {Arithmetic::Result::not_found};
  std::uint64_t value = 0;
  std::string_view text = item->value();
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {Arithmetic::Result::not_a_number};
  value = !down ? value + amount : value > amount ? value - amount : 0;
  bool stored = put(place, key, item->flags, item->expires, std::to_string(value), {}) == Stored::stored;
  return {stored ? Arithmetic::Result::done : Arithmetic::Result::no_memory, value};
}

void Store::flush(std::int64_t delay) {
  if (delay > 0) {
    flush_at_.store(deadline(delay));
  } else {
    flush_at_.store(0);
    flushed_before_.store(next_id_.load());
  }
}

Counts Store::counts() const {
  Counts sum;
  for (const auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    sum.add(shard->counts);
  }
  return sum;
}

}  // namespace kv
