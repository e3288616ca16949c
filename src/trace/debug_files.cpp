#include "trace/debug_files.hpp"

#include <elfutils/libdwelf.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/plain_file.hpp"

namespace hinterland::trace {

std::string build_id_of(const std::string& path) {
  Result<int> opened = open_plain_file(path, "the file");
  if (!opened) return {};
  int file = *opened;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file, ELF_C_READ_MMAP, nullptr);
  const void* bytes = nullptr;
  ssize_t length = elf != nullptr ? dwelf_elf_gnu_build_id(elf, &bytes) : 0;
  std::string id;
  if (length > 0) id.assign(static_cast<const char*>(bytes), static_cast<std::size_t>(length));
  elf_end(elf);
  close(file);
  return id;
}

std::vector<Module> mapped_code(pid_t process) {
  std::vector<Module> found;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long start = 0, end = 0, offset = 0;
    char access[5] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %n", &start, &end, access, &offset, &path) != 4) continue;
    auto at = static_cast<std::size_t>(path);
    if (access[2] != 'x' || at == 0 || at >= line.size() || line[at] != '/') continue;
    found.push_back({start, end, offset, build_id_of(line.substr(at)), line.substr(at)});
  }
  return found;
}

std::map<std::uint32_t, std::string> thread_names(pid_t process) {
  std::map<std::uint32_t, std::string> names;
  std::error_code ignored;  // it has ended: none
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", ignored))
    if (std::string name; std::getline(std::ifstream(entry.path() / "comm"), name))
      names[static_cast<std::uint32_t>(std::atoi(entry.path().filename().c_str()))] = name;
  return names;
}

bool is_same_file(const Module& module) {
  if (module.path.empty() || module.path[0] != '/') return false;
  if (access(module.path.c_str(), R_OK) != 0) return false;
  return module.build_id.empty() || build_id_of(module.path) == module.build_id;
}

namespace {

// Where the file's first byte would lie: the segment with the mapping's offset tells how addresses in the file and
// offsets differ.
bool bias_of(const Module& module, GElf_Addr* bias) {
  Result<int> opened = open_plain_file(module.path, "the file");
  if (!opened) return false;
  int file = *opened;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file, ELF_C_READ_MMAP, nullptr);
  std::size_t count = 0;
  bool found = false;
  if (elf != nullptr && elf_getphdrnum(elf, &count) == 0)
    for (std::size_t i = 0; i < count && !found; ++i) {
      GElf_Phdr head;
      if (gelf_getphdr(elf, static_cast<int>(i), &head) == nullptr || head.p_type != PT_LOAD) continue;
      std::uint64_t first = head.p_offset & ~std::uint64_t{4095};
      found = module.file_offset >= first && module.file_offset < head.p_offset + head.p_filesz;
      *bias = module.start - module.file_offset + head.p_offset - head.p_vaddr;
    }
  elf_end(elf);
  close(file);
  return found;
}

}  // namespace

Dwfl_Module* report_module(Dwfl* dwfl, const Module& module) {
  GElf_Addr bias = 0;
  if (!is_same_file(module) || !bias_of(module, &bias)) return nullptr;
  // A file with two mappings of code is reported twice at the same place, and libdw takes that for one.
  return dwfl_report_elf(dwfl, module.path.c_str(), module.path.c_str(), -1, bias, true);
}

std::string find_debug_file(const Module& module, const std::string& folder) {
  if (module.build_id.empty() || folder.empty()) return {};
  std::string id, name = module.path.substr(module.path.rfind('/') + 1);
  for (unsigned char byte : module.build_id) {
    constexpr char kDigits[] = "0123456789abcdef";
    id += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  for (const std::string& file : {"/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug",
                                  module.path + ".debug", "/" + name + ".debug", module.path, "/" + name})
    if (build_id_of(folder + file) == module.build_id) return folder + file;
  return {};
}

namespace {

// The page of its code that was mapped first. Offsets say nothing in a debug file: it has left the code out.
bool first_page_of_code(const std::string& path, GElf_Addr* first) {
  Result<int> opened = open_plain_file(path, "the file");
  if (!opened) return false;
  int file = *opened;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file, ELF_C_READ_MMAP, nullptr);
  std::size_t count = 0, found = 0;
  if (elf != nullptr && elf_getphdrnum(elf, &count) == 0)
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr head;
      if (gelf_getphdr(elf, static_cast<int>(i), &head) == nullptr) continue;
      if (head.p_type != PT_LOAD || (head.p_flags & PF_X) == 0) continue;
      *first = head.p_vaddr & ~std::uint64_t{4095};
      ++found;
    }
  elf_end(elf);
  close(file);
  return found == 1;  // of several nobody can tell which it is
}

}  // namespace

Dwfl_Module* report_module_by(Dwfl* dwfl, const Module& module, const std::string& file) {
  GElf_Addr first = 0;
  if (!first_page_of_code(file, &first)) return nullptr;
  return dwfl_report_elf(dwfl, module.path.c_str(), file.c_str(), -1, module.start - first, true);
}

int no_build_id_lookup(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }
int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

}  // namespace hinterland::trace
