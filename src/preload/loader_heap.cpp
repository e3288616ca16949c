#include "preload/loader_heap.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/inside.hpp"
#include "base/loaded_functions.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "preload/loader_range.hpp"
#include "preload/local_heap.hpp"
#include "preload/raw.hpp"

namespace hinterland::loader_heap {
namespace {

// The program's, which the loader found.
decltype(&malloc) g_malloc = nullptr;
decltype(&calloc) g_calloc = nullptr;
decltype(&realloc) g_realloc = nullptr;
decltype(&free) g_free = nullptr;
bool g_program_has_malloc = false;

void* allocate(std::size_t size) { return t_inside_runtime > 0 ? local_heap::allocate(size) : g_malloc(size); }

void* allocate_zeroed(std::size_t count, std::size_t size) {
  if (t_inside_runtime == 0) return g_calloc(count, size);
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? nullptr : local_heap::allocate(bytes, 0, true);
}

void* resize(void* block, std::size_t size) {
  if (block == nullptr) return allocate(size);
  return local_heap::owns(block) ? local_heap::resize(block, size) : g_realloc(block, size);
}

void release(void* block) {
  if (local_heap::owns(block))
    local_heap::release(block);
  else
    g_free(block);
}

// glibc's loader keeps its four functions side by side (elf/dl-minimal.c: __rtld_malloc and so on), in any order, in
// what it does not write to any more once it has started (PT_GNU_RELRO).
using Words = std::array<std::uintptr_t, 4>;

template <typename Function>
std::uintptr_t word(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

std::span<std::uintptr_t> constants_of_loader() {
  const std::uintptr_t base = loader_range::g_base;
  if (base == 0) return {};
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (const ElfW(Phdr) & segment : std::span(segments, header->e_phnum))
    if (segment.p_type == PT_GNU_RELRO)
      return {reinterpret_cast<std::uintptr_t*>(base + segment.p_vaddr), segment.p_memsz / sizeof(std::uintptr_t)};
  return {};
}

// Where the four are; nullptr: not there, or in more than one place.
std::uintptr_t* find(const Words& wanted) {
  std::span<std::uintptr_t> words = constants_of_loader();
  std::uintptr_t* found = nullptr;
  for (std::size_t i = 0; i + wanted.size() <= words.size(); ++i) {
    if (!std::is_permutation(wanted.begin(), wanted.end(), &words[i])) continue;
    if (found != nullptr) return nullptr;
    found = &words[i];
  }
  return found;
}

bool replace(std::uintptr_t* place, const Words& before, const Words& after) {
  const std::uintptr_t first = page_floor(word(place));
  const std::size_t bytes = page_ceil(word(place + before.size())) - first;
  if (raw::mprotect(first, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  for (std::size_t i = 0; i < before.size(); ++i)
    place[i] = after[static_cast<std::size_t>(std::find(before.begin(), before.end(), place[i]) - before.begin())];
  raw::mprotect(first, bytes, PROT_READ);
  return true;
}

// The first function of that name in the order in which the loader looks. dlsym(RTLD_DEFAULT) would begin with this
// library, which is linked with -Bsymbolic.
template <typename Function>
void find_first(Function** function, const char* name) {
  struct Search {
    const char* name;
    std::uintptr_t found = 0;
  } search{name};
  auto look = [](dl_phdr_info* file, std::size_t, void* argument) {
    auto* wanted = static_cast<Search*>(argument);
    wanted->found = function_in(*file, wanted->name, false);
    return wanted->found != 0 ? 1 : 0;
  };
  dl_iterate_phdr(look, &search);
  *function = reinterpret_cast<Function*>(search.found);
}

}  // namespace

void take_for_runtime() {
  find_first(&g_malloc, "malloc");
  find_first(&g_calloc, "calloc");
  find_first(&g_realloc, "realloc");
  find_first(&g_free, "free");
  const Words before = {word(g_malloc), word(g_calloc), word(g_realloc), word(g_free)};
  if (before == Words{word(&malloc), word(&calloc), word(&realloc), word(&free)}) return;
  g_program_has_malloc = true;
  const Words after = {word(&allocate), word(&allocate_zeroed), word(&resize), word(&release)};
  std::uintptr_t* place = find(before);
  if (place == nullptr || !replace(place, before, after))
    log::warning(
        "the program has a malloc of its own, and this C library's loader cannot be kept from it: the program may "
        "hang "
        "when it forks");
}

bool program_has_malloc() { return g_program_has_malloc; }

}  // namespace hinterland::loader_heap
