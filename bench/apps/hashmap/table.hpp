// A hash table of 4-byte keys and values with a chain for each bucket, as std::unordered_map has them; its two arrays
// are known, so that a lookup can say what it is about to use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <hinterland/hint.hpp>
#include <vector>

#include "common/hash_order.hpp"
#include "common/random.hpp"

namespace hashmap {

class Table {
  struct Node {
    std::uint32_t next;  // its number, or kEnd
    std::uint32_t key, value;
  };

 public:
  // Room for `entries` keys, at most 2^32 - 1 of them.
  explicit Table(std::size_t entries) : buckets_(entries == 0 ? 1 : entries, kEnd) { nodes_.reserve(entries); }

  // Bytes an entry.
  static constexpr std::size_t kEntryBytes = sizeof(Node) + sizeof(std::uint32_t);

  // Where in the table a key is, by sixteenths (common/hash_order.hpp).
  static std::uint64_t part_of(std::uint64_t key) { return apps::scaled(apps::mixed(key), apps::kTableParts); }

  // A key that is not in the table. One thread.
  void insert(std::uint32_t key, std::uint32_t value) {
    std::uint32_t& first = buckets_[bucket_of(key)];
    nodes_.push_back({first, key, value});
    first = static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  // The value, or nullptr. Any number of threads.
  const std::uint32_t* find(std::uint32_t key) const {
    const std::uint32_t* bucket = &buckets_[bucket_of(key)];
    hl::read(bucket);
    for (std::uint32_t at = *bucket; at != kEnd; at = nodes_[at].next) {
      hl::read(&nodes_[at]);
      if (nodes_[at].key == key) return &nodes_[at].value;
    }
    return nullptr;
  }

  // For a caller that knows several keys beforehand, and can hint: what find() reads first of a key, and what it
  // reads next, nullptr for nothing, which is read from the first.
  const std::uint32_t* bucket_for(std::uint32_t key) const { return &buckets_[bucket_of(key)]; }
  const void* entry_at(const std::uint32_t* bucket) const { return *bucket == kEnd ? nullptr : &nodes_[*bucket]; }
  static constexpr std::size_t kEntrySize = sizeof(Node);

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;

  std::size_t bucket_of(std::uint32_t key) const { return apps::scaled(apps::mixed(key), buckets_.size()); }

  std::vector<std::uint32_t> buckets_;  // the number of a chain's first node, or kEnd
  std::vector<Node> nodes_;
};

}  // namespace hashmap
