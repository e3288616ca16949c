#include "cli/memory_kinds.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/size.hpp"
#include "base/units.hpp"
#include "cli/core/process_memory.hpp"
#include "cli/core/segments.hpp"

namespace hinterland::cli {
namespace {

constexpr std::size_t kNamesShown = 3;

struct KindText {
  const char* name;  // in JSON
  const char* title;
  const char* why;
};
constexpr std::array<KindText, static_cast<std::size_t>(MemoryKind::count)> kKinds = {{
    {"paged", "the program's memory", "in the budget: what is more than it becomes far"},
    {"own", "Hinterland's own", "tables, frames, and with mem: or zmem: the far pages that it keeps here"},
    {"files", "files", "the program, its libraries, files that it mapped; the kernel gives up what was not written"},
    {"shared_memory", "shared memory", "other processes may have it as well"},
    {"stacks", "stacks", "of threads"},
    {"brk", "brk", "memory by brk and sbrk, not by malloc"},
    {"huge_pages", "huge pages", "asked for with MAP_HUGETLB"},
    {"other", "other private", "at addresses that the program chose, or mapped by system calls past libc"},
}};

// Files without a name in any folder: shared memory of POSIX, of System V, and memfd.
bool is_memory_file(const std::string& name) {
  for (std::string_view start : {"/dev/shm/", "/SYSV", "/memfd:", "/dev/zero", "/anon_hugepage"})
    if (name.starts_with(start)) return true;
  return false;
}

// libc puts one below each stack that it makes.
bool is_guard(const Mapping& mapping, const Mapping& above) {
  return mapping.permissions == 0 && mapping.inode == 0 && mapping.end == above.start &&
         mapping.length() <= 64 * kKiB;
}

MemoryKind kind_of(const Mapping& mapping, const Mapping* below, const IsFar& is_far) {
  if (mapping.is_huge) return MemoryKind::huge_page;
  if (!mapping.shared && mapping.inode == 0 && is_far(mapping.start)) return MemoryKind::paged;
  if (mapping.not_dumped) return MemoryKind::own;
  if (mapping.inode != 0) return is_memory_file(mapping.name) ? MemoryKind::shared : MemoryKind::file;
  if (mapping.shared) return MemoryKind::shared;
  if (mapping.name == "[heap]") return MemoryKind::brk;
  if (mapping.name == "[stack]" || (below != nullptr && is_guard(*below, mapping))) return MemoryKind::stack;
  return MemoryKind::other;
}

std::string name_in_list(const std::string& path) {
  if (path.starts_with("/dev/zero")) return "MAP_ANONYMOUS";
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

}  // namespace

std::vector<std::pair<std::string, std::uint64_t>> MemoryOfKind::largest(std::size_t count) const {
  std::vector<std::pair<std::string, std::uint64_t>> all(by_name.begin(), by_name.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(count, all.size()));
  return all;
}

MemoryByKind by_kind(std::span<const Mapping> mappings, const IsFar& is_far) {
  MemoryByKind memory;
  const Mapping* below = nullptr;
  for (const Mapping& mapping : mappings) {
    MemoryKind kind = kind_of(mapping, below, is_far);
    below = &mapping;
    if (mapping.resident_bytes == 0) continue;
    MemoryOfKind& its = memory[static_cast<std::size_t>(kind)];
    its.resident_bytes += mapping.resident_bytes;
    if (kind == MemoryKind::file || kind == MemoryKind::shared)
      its.by_name[mapping.name.empty() ? "without a name" : mapping.name] += mapping.resident_bytes;
  }
  return memory;
}

Result<MemoryByKind> memory_of(const StatPage& page) {
  Result<std::vector<Mapping>> mappings = read_mappings(page.pid);
  if (!mappings) return std::unexpected(mappings.error());
  const RuntimeView view = RuntimeView::of(page);
  const ProcessMemory memory(page.pid);
  return by_kind(*mappings, [&](std::uint64_t address) { return view.holds(address, memory); });
}

std::string memory_text(const MemoryByKind& memory) {
  std::string text;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    char line[200];
    std::snprintf(line, sizeof line, "  %-22s %-12s %s\n", kKinds[i].title,
                  rounded_size_text(memory[i].resident_bytes).c_str(), kKinds[i].why);
    text += line;
    for (const auto& [name, bytes] : memory[i].largest(kNamesShown)) {
      std::snprintf(line, sizeof line, "    %-20.60s %s\n", name_in_list(name).c_str(),
                    rounded_size_text(bytes).c_str());
      text += line;
    }
  }
  return text;
}

Json memory_json(const MemoryByKind& memory) {
  Json json = Json::object();
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Json largest = Json::array();
    for (const auto& [name, bytes] : memory[i].largest(kNamesShown))
      largest.push_back({{"name", name}, {"resident_bytes", bytes}});
    json[kKinds[i].name] = {{"resident_bytes", memory[i].resident_bytes}, {"largest", largest}};
  }
  return json;
}

}  // namespace hinterland::cli
