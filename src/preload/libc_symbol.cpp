#include "preload/libc_symbol.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "preload/object_names.hpp"

namespace hinterland {
namespace {

struct Wanted {
  const char* name;
  void* found;
};

// As the GNU hash table has it: a number for the table, a count of buckets, the first symbol that is hashed, words of
// a filter and a shift; then the filter, the buckets, and of each symbol its hash, with bit 0 at the end of a bucket.
struct HashHead {
  std::uint32_t buckets, first_symbol, filter_words, filter_shift;
};

std::uint32_t hash_of(const char* name) {
  constexpr std::uint32_t kStart = 5381, kFactor = 33;
  std::uint32_t hash = kStart;
  for (; *name != '\0'; ++name) hash = hash * kFactor + static_cast<unsigned char>(*name);
  return hash;
}

struct Tables {
  const HashHead* hash = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

// The loader may have made addresses of what are offsets in the file.
std::uintptr_t address(std::uintptr_t base, std::uintptr_t value) { return value < base ? base + value : value; }

Tables tables_of(const dl_phdr_info& object) {
  Tables tables;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const std::uintptr_t at = address(object.dlpi_addr, entry->d_un.d_ptr);
      if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const HashHead*>(at);
      if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) tables.names = reinterpret_cast<const char*>(at);
    }
  }
  return tables;
}

const ElfW(Sym) * symbol_in(const Tables& tables, const char* name) {
  const HashHead& head = *tables.hash;
  const auto* filter = reinterpret_cast<const std::uint64_t*>(&head + 1);
  const auto* buckets = reinterpret_cast<const std::uint32_t*>(filter + head.filter_words);
  const std::uint32_t* hashes = buckets + head.buckets;
  const std::uint32_t hash = hash_of(name);
  std::uint32_t index = head.buckets != 0 ? buckets[hash % head.buckets] : 0;
  if (index < head.first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t here = hashes[index - head.first_symbol];
    const ElfW(Sym)& symbol = tables.symbols[index];
    if ((here | 1U) == (hash | 1U) && symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        std::strcmp(tables.names + symbol.st_name, name) == 0)
      return &symbol;
    if ((here & 1U) != 0) return nullptr;
  }
}

int look(dl_phdr_info* object, std::size_t, void* argument) {
  auto* wanted = static_cast<Wanted*>(argument);
  if (!object_names::is_libc(object->dlpi_name) && !object_names::begins_with(object->dlpi_name, "libdl.so"))
    return 0;
  const Tables tables = tables_of(*object);
  if (tables.hash == nullptr || tables.symbols == nullptr || tables.names == nullptr) return 0;
  const ElfW(Sym)* found = symbol_in(tables, wanted->name);
  if (found != nullptr) wanted->found = reinterpret_cast<void*>(object->dlpi_addr + found->st_value);
  return found != nullptr ? 1 : 0;
}

}  // namespace

void* find_in_libc(const char* name) {
  Wanted wanted{name, nullptr};
  dl_iterate_phdr(look, &wanted);
  return wanted.found;
}

}  // namespace hinterland
