#include "base/loaded_functions.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace hinterland {
namespace {

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
  const ElfW(Half) * versions = nullptr;  // of each symbol; nullptr: there are none
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
      if (entry->d_tag == DT_VERSYM) tables.versions = reinterpret_cast<const ElfW(Half)*>(at);
    }
  }
  return tables;
}

bool is_function(const ElfW(Sym) & symbol, bool indirect) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || (indirect && type == STT_GNU_IFUNC));
}

// One that is only for programs that were linked when there was no later version.
bool is_old(const Tables& tables, std::uint32_t index) {
  constexpr ElfW(Half) kHidden = 0x8000;
  return tables.versions != nullptr && (tables.versions[index] & kHidden) != 0;
}

const ElfW(Sym) * symbol_in(const Tables& tables, const char* name, bool indirect) {
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
    if ((here | 1U) == (hash | 1U) && is_function(symbol, indirect) && !is_old(tables, index) &&
        std::strcmp(tables.names + symbol.st_name, name) == 0)
      return &symbol;
    if ((here & 1U) != 0) return nullptr;
  }
}

struct Behind {
  std::uintptr_t caller;
  const char* name;
  bool indirect;
  bool passed = false;  // the caller's file
  std::uintptr_t found = 0;
};

bool holds(const dl_phdr_info& file, std::uintptr_t address) {
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = file.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && address - file.dlpi_addr - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

// Files come in the order in which the loader looks into them.
int look_behind(dl_phdr_info* file, std::size_t, void* argument) {
  auto* wanted = static_cast<Behind*>(argument);
  if (wanted->passed)
    wanted->found = function_in(*file, wanted->name, wanted->indirect);
  else
    wanted->passed = holds(*file, wanted->caller);
  return wanted->found != 0 ? 1 : 0;
}

}  // namespace

std::uintptr_t function_in(const dl_phdr_info& file, const char* name, bool indirect) {
  const Tables tables = tables_of(file);
  if (tables.hash == nullptr || tables.symbols == nullptr || tables.names == nullptr) return 0;
  const ElfW(Sym)* found = symbol_in(tables, name, indirect);
  return found != nullptr ? file.dlpi_addr + found->st_value : 0;
}

std::uintptr_t function_behind(const void* caller, const char* name, bool indirect) {
  Behind wanted{reinterpret_cast<std::uintptr_t>(caller), name, indirect};
  dl_iterate_phdr(look_behind, &wanted);
  return wanted.found;
}

}  // namespace hinterland
