// What of a running program lies in this machine's memory, by kind: what its budget is about, and what stays local
// whatever the budget, with why.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/stats.hpp"
#include "cli/memory_map.hpp"

namespace hinterland::cli {

enum class MemoryKind : std::uint32_t { paged, own, file, shared, stack, brk, huge_page, other, count };

struct MemoryOfKind {
  std::uint64_t resident_bytes = 0;
  std::map<std::string, std::uint64_t> by_name;  // of files and shared memory: resident bytes
  // The largest first, at most `count`.
  std::vector<std::pair<std::string, std::uint64_t>> largest(std::size_t count) const;
};
using MemoryByKind = std::array<MemoryOfKind, static_cast<std::size_t>(MemoryKind::count)>;

// `mappings` ascend by address. Private memory without a file is paged where is_far says so of its address.
using IsFar = std::function<bool(std::uint64_t address)>;
MemoryByKind by_kind(std::span<const Mapping> mappings, const IsFar& is_far);

// Of the process of `page`, which runs. The kernel walks its page tables meanwhile: its page faults and mmap wait for
// that, some milliseconds for each resident GiB. Needs the permission that a debugger needs.
Result<MemoryByKind> memory_of(const StatPage& page);

std::string memory_text(const MemoryByKind& memory);
Json memory_json(const MemoryByKind& memory);

}  // namespace hinterland::cli
