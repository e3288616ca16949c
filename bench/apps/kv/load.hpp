// Load for a server of memcached's text protocol, and what it should hold: keys of 24 bytes, values that follow from
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "command/options.hpp"

namespace kv {

inline constexpr std::size_t kLoadKeyBytes = 24;

struct LoadOptions {
  std::uint16_t port = 0;  // on this machine
  std::uint64_t keys = 0;  // [0, keys) are there
  std::size_t value_bytes = 512;
  double skew = 1.0;           // of Zipf's distribution of keys
  unsigned set_percent = 0;    // of the requests; they write what is there already
  std::uint64_t requests = 0;  // of all connections together
  unsigned connections = 1;
  unsigned threads = 1;  // ordinary ones, that drive them
  unsigned depth = 16;   // requests on the way, a connection
  std::uint64_t seed = 1;
};

// The options that every program with this load has: --skew, --requests, --set-percent, --depth. `options` is
// borrowed until they are parsed.
void offer_load(bench::Options& app, LoadOptions& options);

std::string load_key(std::uint64_t number);
// Fills `value`, of any size.
void load_value(std::uint64_t number, std::uint64_t seed, std::string& value);

// Stores all keys, over one connection. Throws as load() does.
void fill(const LoadOptions& options);

// Asks for keys, and looks at each answer. A hash of all answers, the same for the same options except `threads` and
// `depth`. Throws std::runtime_error at a wrong answer, or when the server goes away.
std::uint64_t load(const LoadOptions& options);

}  // namespace kv
