// A program with an allocator of its own, linked in or preloaded beside us (jemalloc, mimalloc, tcmalloc): memory
// from each of its ways to allocate can be freed as it can without us, the allocator's own calls included.
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
  _exit(3);
}

void check_preloaded() {
  if (std::getenv("EXPECT_PRELOADED") == nullptr) return;
  bool found = false;
  char line[512];
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr)
    found |= std::strstr(line, "libhinterland-preload") != nullptr;
  if (maps != nullptr) std::fclose(maps);
  if (!found) fail("not preloaded");
}

void fill(void* block, std::size_t size) {
  if (block == nullptr) fail("no memory");
  std::memset(block, static_cast<int>(size % 251), size);
}
bool holds(const void* block, std::size_t size, std::size_t filled) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[i] != filled % 251) return false;
  return true;
}

// Blocks of `allocate`, resized and freed with what the C library names.
template <typename Allocate>
void pass_around(const char* what, Allocate allocate) {
  for (std::size_t size = 8; size < (std::size_t{4} << 20); size *= 3) {
    void* block = allocate(size);
    fill(block, size);
    if (malloc_usable_size(block) < size) fail("usable size");
    block = std::realloc(block, size * 2);
    if (block == nullptr || !holds(block, size, size)) fail("realloc");
    std::free(block);
    std::free(allocate(size));
  }
  std::printf("%s\n", what);
}

// The allocator's own names, where it has them. (mallocx takes flags, which are 0.)
void own_names() {
  if (auto* mallocx = reinterpret_cast<void* (*)(std::size_t, int)>(dlsym(RTLD_DEFAULT, "mallocx")))
    pass_around("mallocx", [mallocx](std::size_t size) { return mallocx(size, 0); });
  for (const char* name : {"mi_malloc", "tc_malloc"})
    if (auto* own = reinterpret_cast<void* (*)(std::size_t)>(dlsym(RTLD_DEFAULT, name))) pass_around(name, own);
}

void work() {
  std::map<int, std::string> words;
  for (int i = 0; i < 20000; ++i) words[i * 7919 % 4001] += std::to_string(i);
  std::size_t bytes = 0;
  for (const auto& [number, word] : words) bytes += word.size() + static_cast<std::size_t>(number);
  if (bytes != 88890 + 4001 * 4000 / 2) fail("words");
  std::vector<char> large(3 << 20, 'x');
  if (large[large.size() / 2] != 'x') fail("large");
}

}  // namespace

int main() {
  check_preloaded();
  pass_around("malloc", [](std::size_t size) { return std::malloc(size); });
  pass_around("calloc", [](std::size_t size) { return std::calloc(size, 1); });
  pass_around("memalign", [](std::size_t size) { return memalign(64, size); });
  own_names();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  char* text = strdup("from libc");
  text = static_cast<char*>(std::realloc(text, 100000));
  std::printf("%s\n", text);
  std::free(text);
  return 0;
}
