// A hash table for many keys of 8 bytes in memory that may be far, for lookups of many keys at a time: a memory
// server that has the operator lookup.so follows each search on its page and sends the value, 64 bytes instead of the
// page. Pages that are here, and all where nobody has the operator, are searched here. docs/offload.md
//
//     hl::far::table<account> accounts(1'000'000);
//     accounts.insert_or_assign(number, {...});
//     std::vector<std::optional<account>> found(numbers.size());
//     accounts.find(numbers, found);
//
// Ordinary memory of the program, in one piece: open addressing, at most three quarters full, nothing is ever
// removed. For objects that move on their own, grow, and are shared by threads: object_map.hpp.
//
// Threads: as std::unordered_map. Lookups as operator.hpp: they may block for the server, and believe it.
// C++20, for GCC and Clang on x86-64. AIFM (OSDI 2020), 5 "Hashtable": the active component follows the chain.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "hinterland/operator.hpp"
#include "hinterland/table.h"

namespace hl::far {

template <typename Value>
class table {
  static_assert(std::is_trivially_copyable_v<Value> && std::is_default_constructible_v<Value>,
                "values are looked up as bytes, and may come over the network");
  static_assert(sizeof(Value) <= HL_TABLE_VALUE_MAX && alignof(Value) <= 8, "values have at most 56 bytes");

 public:
  // Room for so many keys. std::bad_alloc.
  explicit table(std::size_t keys_max) : keys_max_(keys_max), mask_(entries_for(keys_max) - 1) {
    const std::size_t bytes = (mask_ + 1) * entry_bytes;
    entries_.reset(static_cast<unsigned char*>(::operator new(bytes, std::align_val_t{detail::operator_page_bytes})));
    std::memset(entries_.get(), 0xff, bytes);  // no keys
  }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return keys_max_; }

  // True: the key was not there before. std::length_error when there is no room, std::invalid_argument for a key of
  // all ones, which is none.
  bool insert_or_assign(std::uint64_t key, const Value& value) {
    if (key == HL_TABLE_NO_KEY) throw std::invalid_argument("hl::far::table: a key of all ones marks an empty entry");
    std::size_t at = first_of(key);
    while (key_at(at) != key && key_at(at) != HL_TABLE_NO_KEY) at = (at + 1) & mask_;
    const bool is_new = key_at(at) != key;
    if (is_new && size_ == keys_max_)
      throw std::length_error("hl::far::table: it has as many keys as it has room for");
    std::memcpy(entry(at) + sizeof key, &value, sizeof value);
    std::memcpy(entry(at), &key, sizeof key);
    size_ += is_new ? 1 : 0;
    return is_new;
  }

  // Many, in the order of their places, so that each page comes once; of the same key twice the last counts. The
  // value of keys[i] is value_of(i), which is called once for each i, in any order. Errors as above, with some
  // inserted.
  template <typename ValueOf>
  void insert_or_assign(std::span<const std::uint64_t> keys, ValueOf&& value_of)
    requires std::is_invocable_r_v<Value, ValueOf, std::size_t>
  {
    std::vector<search> order(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) order[i] = {i, first_of(keys[i])};
    std::ranges::sort(order, {}, [](const search& each) { return std::pair(each.at, each.which); });
    for (const search& each : order) insert_or_assign(keys[each.which], Value(value_of(each.which)));
  }

  // One key: brings the page.
  std::optional<Value> find(std::uint64_t key) const {
    if (key == HL_TABLE_NO_KEY) return std::nullopt;
    for (std::size_t at = first_of(key);; at = (at + 1) & mask_) {
      if (key_at(at) == key) return value_of(entry(at) + sizeof key);
      if (key_at(at) == HL_TABLE_NO_KEY) return std::nullopt;
    }
  }

  // Many: out[i] is what keys[i] has. std::invalid_argument when `out` is shorter than `keys`, before anything is
  // written.
  void find(std::span<const std::uint64_t> keys, std::span<std::optional<Value>> out) const {
    if (out.size() < keys.size()) throw std::invalid_argument("hl::far::table: more keys than room for values");
    std::vector<search> searches;
    searches.reserve(HL_COMPUTE_MAX);
    std::vector<hl_piece> pieces(HL_COMPUTE_MAX);
    std::vector<hl_table_found> found(HL_COMPUTE_MAX);
    // Those that go on behind a page go on together with new ones.
    for (std::size_t next = 0; next < keys.size() || !searches.empty();) {
      for (; next < keys.size() && searches.size() < HL_COMPUTE_MAX; ++next) {
        out[next].reset();
        if (keys[next] != HL_TABLE_NO_KEY) searches.push_back({next, first_of(keys[next])});
      }
      step(keys, out, &searches, std::span(pieces).first(searches.size()), std::span(found).first(searches.size()));
    }
  }

 private:
  struct search {
    std::size_t which, at;
  };
  struct give_back {
    void operator()(unsigned char* memory) const {
      ::operator delete(memory, std::align_val_t{detail::operator_page_bytes});
    }
  };
  static constexpr std::size_t entry_bytes = std::bit_ceil(sizeof(std::uint64_t) + sizeof(Value));
  static constexpr hl_operator lookup = HL_TABLE_LOOKUP;

  static std::size_t entries_for(std::size_t keys_max) {
    if (keys_max > SIZE_MAX / (8 * entry_bytes)) throw std::bad_alloc();
    return std::bit_ceil(std::max<std::size_t>(keys_max + keys_max / 3 + 1, 2));
  }
  unsigned char* entry(std::size_t at) const { return entries_.get() + at * entry_bytes; }
  std::uint64_t key_at(std::size_t at) const {
    std::uint64_t key;
    std::memcpy(&key, entry(at), sizeof key);
    return key;
  }
  static Value value_of(const unsigned char* bytes) {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  // splitmix64's last steps.
  std::size_t first_of(std::uint64_t key) const {
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>(key ^ key >> 31) & mask_;
  }
  // The entry behind the page, or behind the table's end the first.
  std::size_t end_of_page(std::size_t at) const {
    constexpr std::size_t on_page = detail::operator_page_bytes / entry_bytes;
    return std::min((at / on_page + 1) * on_page, mask_ + 1);
  }
  // All searches on one page each; those that have not ended stay.
  void step(std::span<const std::uint64_t> keys, std::span<std::optional<Value>> out, std::vector<search>* searches,
            std::span<hl_piece> pieces, std::span<hl_table_found> found) const {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const search& each = (*searches)[i];
      pieces[i] = {entry(each.at), (end_of_page(each.at) - each.at) * entry_bytes, keys[each.which]};
    }
    apply_at<hl_table_found>(lookup, std::uint64_t{entry_bytes}, pieces, found);
    std::size_t left = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const search each = (*searches)[i];
      if (found[i].state == HL_TABLE_FOUND) out[each.which] = value_of(found[i].value);
      if (found[i].state == HL_TABLE_BEYOND) (*searches)[left++] = {each.which, end_of_page(each.at) & mask_};
    }
    searches->resize(left);
  }

  std::size_t keys_max_, mask_, size_ = 0;
  std::unique_ptr<unsigned char[], give_back> entries_;
};

}  // namespace hl::far
