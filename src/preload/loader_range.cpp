#include "preload/loader_range.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>

#include "preload/object_names.hpp"

extern "C" void* __tls_get_addr(void*);  // in the loader

namespace hinterland::loader_range {

std::uintptr_t g_base = 0;
std::size_t g_bytes = 0;
std::uintptr_t g_libc_base = 0;
std::size_t g_libc_bytes = 0;

namespace {

std::size_t loaded_bytes(const ElfW(Phdr) * segments, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i)
    if (segments[i].p_type == PT_LOAD) bytes = std::max(bytes, segments[i].p_vaddr + segments[i].p_memsz);
  return bytes;
}

}  // namespace

void find() {
  // Not by AT_BASE: that is 0 in a program that was started by naming the loader on the command line.
  Dl_info loader{};
  if (dladdr(reinterpret_cast<const void*>(&__tls_get_addr), &loader) == 0) return;
  const auto* header = static_cast<const ElfW(Ehdr)*>(loader.dli_fbase);
  g_base = reinterpret_cast<std::uintptr_t>(header);
  g_bytes = loaded_bytes(reinterpret_cast<const ElfW(Phdr)*>(g_base + header->e_phoff), header->e_phnum);
}

void find_libc() {
  auto look = [](dl_phdr_info* object, std::size_t, void*) {
    if (!object_names::is_libc(object->dlpi_name)) return 0;
    g_libc_base = object->dlpi_addr;
    g_libc_bytes = loaded_bytes(object->dlpi_phdr, object->dlpi_phnum);
    return 1;
  };
  dl_iterate_phdr(look, nullptr);
}

}  // namespace hinterland::loader_range
