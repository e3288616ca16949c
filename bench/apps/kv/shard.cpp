#include "kv/shard.hpp"

#include <cstring>
#include <hinterland/hint.hpp>
#include <new>

namespace kv {
namespace {

constexpr std::size_t kFirstBuckets = 64;
constexpr unsigned kLooks = 64;  // for something to evict

bool is_alive(const Item& item, const Moment& moment) {
  return item.expires > moment.now && item.id >= moment.flushed_before;
}

}  // namespace

void Counts::add(const Counts& other) {
  items += other.items, bytes += other.bytes;
  stored += other.stored, evictions += other.evictions, expired += other.expired;
  gets += other.gets, hits += other.hits, sets += other.sets;
  touches += other.touches, touch_hits += other.touch_hits;
  deletes += other.deletes, delete_hits += other.delete_hits;
}

Shard::Shard(std::size_t limit_bytes) : limit_bytes_(limit_bytes), buckets_(kFirstBuckets, kNone) {}

Shard::~Shard() { clear(); }

std::uint32_t Shard::place_of(std::string_view key, std::uint32_t hash) {
  hl::read(&bucket(hash));
  std::uint32_t number = bucket(hash);
  for (; number != kNone; number = places_[number].next) {
    const Place& place = places_[number];
    hl::read(&place);
    if (place.hash != hash) continue;
    hl::read(place.item);
    if (place.item->key() == key) break;
  }
  return number;
}

std::uint32_t Shard::place_of(const Item* item, std::uint32_t hash) {
  std::uint32_t number = bucket(hash);
  while (number != kNone && places_[number].item != item) number = places_[number].next;
  return number;
}

Item* Shard::find(std::string_view key, std::uint32_t hash, const Moment& moment) {
  std::uint32_t number = place_of(key, hash);
  if (number == kNone) return nullptr;
  Item* item = places_[number].item;
  if (!is_alive(*item, moment)) {
    ++counts.expired;
    drop(number);
    return nullptr;
  }
  hl::hint(item, {.size = item->bytes});
  used_[number] = 1;
  return item;
}

Item* Shard::put(std::string_view key, std::uint32_t hash, std::size_t value_bytes) {
  std::size_t bytes = Item::bytes_for(key.size(), value_bytes);
  std::uint32_t number = place_of(key, hash);
  if (number != kNone && places_[number].item->bytes != bytes) {
    drop(number);
    number = kNone;
  }
  if (number != kNone) {
    used_[number] = 1;
  } else {
    auto* item = make_room(bytes) ? static_cast<Item*>(::operator new(bytes, std::nothrow)) : nullptr;
    if (item == nullptr) return nullptr;
    number = take_place();
    places_[number] = {item, hash, bucket(hash)};
    used_[number] = 0;  // the hand is a round away
    bucket(hash) = number;
    counts.bytes += bytes;
    if (++counts.items > buckets_.size()) grow();
  }
  Item* item = places_[number].item;
  hl::hint(item, {.mut = true, .size = bytes});
  item->bytes = static_cast<std::uint32_t>(bytes);
  item->value_bytes = static_cast<std::uint32_t>(value_bytes);
  item->key_bytes = static_cast<std::uint8_t>(key.size());
  std::memcpy(item->key_data(), key.data(), key.size());
  ++counts.stored;
  return item;
}

void Shard::remove(std::uint32_t hash, Item* item) {
  if (std::uint32_t number = place_of(item, hash); number != kNone) drop(number);
}

void Shard::clear() {
  for (std::uint32_t number = 0; number < places_.size(); ++number)
    if (places_[number].item != nullptr) drop(number);
}

std::uint32_t Shard::take_place() {
  if (free_ == kNone) {
    places_.push_back({});
    used_.push_back(0);
    return static_cast<std::uint32_t>(places_.size() - 1);
  }
  std::uint32_t number = free_;
  free_ = places_[number].next;
  return number;
}

// Takes the item out, and frees it.
void Shard::drop(std::uint32_t number) {
  Place& place = places_[number];
  std::uint32_t* link = &bucket(place.hash);
  while (*link != number) link = &places_[*link].next;
  *link = place.next;
  hl::write(place.item);  // its size is read, and allocators write into what is free
  --counts.items;
  counts.bytes -= place.item->bytes;
  ::operator delete(place.item);
  place = {nullptr, 0, free_};
  used_[number] = 0;
  free_ = number;
}

void Shard::grow() {
  std::vector<std::uint32_t>(buckets_.size() * 2, kNone).swap(buckets_);
  for (std::uint32_t number = 0; number < places_.size(); ++number) {
    Place& place = places_[number];
    if (place.item == nullptr) continue;
    place.next = bucket(place.hash);
    bucket(place.hash) = number;
  }
}

// False when all would not be enough.
bool Shard::make_room(std::size_t bytes) {
  if (bytes > limit_bytes_) return false;
  while (counts.bytes + bytes > limit_bytes_) {
    ++counts.evictions;
    drop(victim());
  }
  return true;
}

// The clock: whatever was used since the hand went by stays for another round. Where everything was, the first of
// some goes: a round to find that out would come by what is new, and has not had the time to be used.
std::uint32_t Shard::victim() {
  std::uint32_t first = kNone;
  for (unsigned looks = 0; looks < kLooks || first == kNone;) {
    hand_ = hand_ + 1 < places_.size() ? hand_ + 1 : 0;
    if (places_[hand_].item == nullptr) continue;
    if (used_[hand_] == 0) return hand_;
    used_[hand_] = 0;
    if (first == kNone) first = hand_;
    ++looks;
  }
  return hand_ = first;  // those that it went by are next, unless they are used again
}

}  // namespace kv
