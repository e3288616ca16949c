// What is stored: a header, the key, the value, in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kv {

inline constexpr std::size_t kKeyBytesMax = 250;                             // the protocol's
inline constexpr std::size_t kValueBytesMax = (std::size_t{1} << 20) - 512;  // of memcached by default, about

struct Item {
  std::uint64_t id;      // another one after each change: what `gets` tells and `cas` wants to see again
  std::int64_t expires;  // by the store's clock, seconds; kNever
  std::uint32_t flags;   // the client's own
  std::uint32_t value_bytes;
  std::uint32_t bytes;  // of all of it, as it was allocated
  std::uint8_t key_bytes;

  char* key_data() { return reinterpret_cast<char*>(this + 1); }
  char* value_data() { return key_data() + key_bytes; }
  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }
  std::string_view value() const { return {key().data() + key_bytes, value_bytes}; }

  static constexpr std::int64_t kNever = INT64_MAX;
  // In steps, so that a value of about the same size fits where the old one was.
  static constexpr std::size_t bytes_for(std::size_t key_bytes, std::size_t value_bytes) {
    return (sizeof(Item) + key_bytes + value_bytes + 15) / 16 * 16;
  }
};

}  // namespace kv
