// From keys to small values: an index with open addressing, and the entries apart from it, as in the papers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hinterland/hint.hpp>

#include "common/hash_order.hpp"
#include "common/pages.hpp"
#include "common/random.hpp"

namespace webservice {

class Table {
 public:
  // Of keys [0, entries), each with a value of so many bytes, at least 4. An entry takes what an allocator by powers
  // of two would give it.
  Table(std::size_t entries, std::size_t value_bytes)
      : entry_bytes_(entry_bytes(value_bytes)),
        value_bytes_(value_bytes),
        slots_(slots_for(entries)),
        entries_(entries * entry_bytes_) {
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] = {0, nullptr};
    std::byte* entry = &entries_[0];
    apps::in_hash_order(
        entries, [](std::uint64_t key) { return apps::scaled(apps::mixed(key), apps::kTableParts); },
        [&](std::uint64_t key) {
          insert(key, entry);
          entry += entry_bytes_;
        });
  }

  static std::size_t bytes_for_entry(std::size_t value_bytes) {
    return entry_bytes(value_bytes) + sizeof(Slot) * 4 / 3;
  }
  std::size_t bytes() const { return slots_.bytes() + entries_.bytes(); }

  // The first word of the value of a key, and all of the value at `copy`. False where the key is not there. Any
  // number of threads.
  bool find(std::uint64_t key, std::uint32_t& word, std::byte* copy) const {
    std::uint64_t hash = apps::mixed(key);
    for (std::size_t at = apps::scaled(hash, slots_.size());; at = at + 1 == slots_.size() ? 0 : at + 1) {
      const Slot& slot = slots_[at];
      hl::read(&slot);
      if (slot.entry == nullptr) return false;
      if (slot.hash != hash) continue;
      hl::hint(slot.entry, {.size = sizeof key + value_bytes_});
      if (std::memcmp(slot.entry, &key, sizeof key) != 0) continue;
      std::memcpy(copy, slot.entry + sizeof key, value_bytes_);
      std::memcpy(&word, copy, sizeof word);
      return true;
    }
  }

  // What the first word of a key's value is.
  static std::uint32_t word_of(std::uint64_t key) { return static_cast<std::uint32_t>(apps::mixed(key ^ 0x5EED)); }

 private:
  struct Slot {
    std::uint64_t hash;
    std::byte* entry;  // the key, and then the value; nullptr: free
  };

  static std::size_t entry_bytes(std::size_t value_bytes) {
    std::size_t bytes = std::bit_ceil(sizeof(std::uint64_t) + value_bytes);
    return bytes < 32 ? 32 : bytes;
  }
  static std::size_t slots_for(std::size_t entries) { return entries * 4 / 3 + 1; }

  void insert(std::uint64_t key, std::byte* entry) {
    std::memcpy(entry, &key, sizeof key);
    std::uint32_t word = word_of(key);
    std::memset(entry + sizeof key, static_cast<int>(word & 0x7F), value_bytes_);
    std::memcpy(entry + sizeof key, &word, sizeof word);
    std::uint64_t hash = apps::mixed(key);
    std::size_t at = apps::scaled(hash, slots_.size());
    while (slots_[at].entry != nullptr) at = at + 1 == slots_.size() ? 0 : at + 1;
    slots_[at] = {hash, entry};
  }

  std::size_t entry_bytes_, value_bytes_;
  apps::Pages<Slot> slots_;
  apps::Pages<std::byte> entries_;
};

}  // namespace webservice
