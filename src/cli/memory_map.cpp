#include "cli/memory_map.hpp"

#include <elf.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace hinterland::cli {
namespace {

// "7f00-7f10 rw-p 00000000 00:00 0   [heap]"
bool parse_first_line(const std::string& line, Mapping& mapping) {
  unsigned long long start = 0, end = 0, offset = 0, inode = 0;
  char permissions[5] = "";
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %*x:%*x %llu %n", &start, &end, permissions, &offset, &inode,
                  &name_at) < 5)
    return false;
  mapping = {};
  mapping.start = start;
  mapping.end = end;
  mapping.offset = offset;
  mapping.inode = inode;
  mapping.permissions =
      (permissions[0] == 'r' ? PF_R : 0u) | (permissions[1] == 'w' ? PF_W : 0u) | (permissions[2] == 'x' ? PF_X : 0u);
  mapping.shared = permissions[3] == 's';
  mapping.name = line.substr(static_cast<std::size_t>(name_at));
  return true;
}

void parse_flags(const std::string& line, Mapping& mapping) {
  mapping.not_dumped = line.find(" dd") != std::string::npos;
  mapping.is_device = line.find(" io") != std::string::npos || line.find(" pf") != std::string::npos;
  mapping.is_huge = line.find(" ht") != std::string::npos;
}

// "Rss:                 12 kB", "VmFlags: rd wr mr mw me ac"
void parse_property(const std::string& line, Mapping& mapping) {
  unsigned long long kilobytes = 0;
  if (std::sscanf(line.c_str(), "Rss: %llu kB", &kilobytes) == 1) mapping.resident_bytes = kilobytes << 10;
  if (std::sscanf(line.c_str(), "Anonymous: %llu kB", &kilobytes) == 1) mapping.anonymous_bytes = kilobytes << 10;
  // Of huge pages, which are in neither of these.
  if (std::sscanf(line.c_str(), "Shared_Hugetlb: %llu kB", &kilobytes) == 1 ||
      std::sscanf(line.c_str(), "Private_Hugetlb: %llu kB", &kilobytes) == 1)
    mapping.resident_bytes += kilobytes << 10;
  if (line.starts_with("VmFlags:")) parse_flags(line, mapping);
}

}  // namespace

Result<std::vector<Mapping>> read_mappings(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/smaps";
  std::ifstream file(path);
  std::vector<Mapping> mappings;
  std::string line;
  Mapping mapping;
  while (std::getline(file, line)) {
    if (parse_first_line(line, mapping))
      mappings.push_back(mapping);
    else if (!mappings.empty())
      parse_property(line, mappings.back());
  }
  if (mappings.empty()) return std::unexpected(Error::make(errno, "%s cannot be read", path.c_str()));
  return mappings;
}

}  // namespace hinterland::cli
