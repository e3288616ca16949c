#include "base/available_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/units.hpp"

namespace hinterland {
namespace {

// cgroup v1 says "no limit" with a number near 2^63: anything beyond the address space is none.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 47;

std::string file_text(const std::string& path) {
  std::string text;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t got; (got = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(file);
  return text;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::string copy(text.substr(0, 24));
  char* end = nullptr;
  std::uint64_t value = std::strtoull(copy.c_str(), &end, 10);
  if (end == copy.c_str()) return std::nullopt;  // "max", or nothing
  return value;
}

// The number after `key` at the start of a line ("MemAvailable:  123 kB", "inactive_file 456"); 0 without one.
std::uint64_t field(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    if (line.starts_with(key)) return number(line.substr(key.size())).value_or(0);
    at = end + 1;
  }
  return 0;
}

struct CgroupFiles {
  int version;
  const char* mount;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // key in memory.stat: page cache that goes before anything is refused
};
constexpr CgroupFiles kVersion1{1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file "};
constexpr CgroupFiles kVersion2{2, "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

void look_at_group(const std::string& directory, const CgroupFiles& files, AvailableMemory& memory) {
  std::optional<std::uint64_t> limit = number(file_text(directory + "/" + files.limit));
  if (!limit || *limit >= kNoLimit) return;
  std::uint64_t used = number(file_text(directory + "/" + files.usage)).value_or(0);
  std::uint64_t cache = field(file_text(directory + "/memory.stat"), files.reclaimable);
  std::uint64_t held = used > cache ? used - cache : 0;
  std::uint64_t room = *limit > held ? *limit - held : 0;
  if (memory.cgroup_limit_bytes != 0 && room >= memory.cgroup_room_bytes) return;
  memory.cgroup_limit_bytes = *limit;
  memory.cgroup_room_bytes = room;
  memory.cgroup_version = files.version;
}

// From the process's group up to the root: any of them may be the one that limits.
void look_at_groups(const std::string& root, std::string path, const CgroupFiles& files, AvailableMemory& memory) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  for (;;) {
    look_at_group(root + files.mount + path, files, memory);
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

// A line of /proc/self/cgroup: "hierarchy:controllers:path"; version 2 has hierarchy 0 and no controllers.
void look_at_line(const std::string& root, std::string_view line, AvailableMemory& memory) {
  std::size_t first = line.find(':');
  std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return;
  std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
  std::string path(line.substr(second + 1));
  if (!path.starts_with('/')) return;
  if (controllers == ",,") look_at_groups(root, path, kVersion2, memory);
  if (controllers.find(",memory,") != std::string::npos) look_at_groups(root, path, kVersion1, memory);
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory memory;
  memory.system_bytes = field(file_text(root + "/proc/meminfo"), "MemAvailable:") * kKiB;
  std::string groups = file_text(root + "/proc/self/cgroup");
  for (std::size_t at = 0; at < groups.size();) {
    std::size_t end = groups.find('\n', at);
    if (end == std::string::npos) end = groups.size();
    look_at_line(root, std::string_view(groups).substr(at, end - at), memory);
    at = end + 1;
  }
  return memory;
}

}  // namespace hinterland
