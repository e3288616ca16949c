#include "preload/loader_range.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>

namespace hinterland::loader_range {

std::uintptr_t g_base = 0;
std::size_t g_bytes = 0;

void find() {
  std::uintptr_t base = getauxval(AT_BASE);
  if (base == 0) return;  // started by naming the loader on the command line: its allocations are then far, too
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  std::size_t bytes = 0;
  for (int i = 0; i < header->e_phnum; ++i)
    if (segments[i].p_type == PT_LOAD) bytes = std::max(bytes, segments[i].p_vaddr + segments[i].p_memsz);
  g_base = base;
  g_bytes = bytes;
}

}  // namespace hinterland::loader_range
