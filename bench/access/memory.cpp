#include "access/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace access_bench {

Memory::Memory(std::size_t bytes, bool from_malloc)
    : bytes_(bytes), taken_bytes_(bytes + (from_malloc ? kPageBytes : 0)), from_malloc_(from_malloc) {
  taken_ = from_malloc ? std::malloc(taken_bytes_)
                       : mmap(nullptr, taken_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken_ == nullptr || taken_ == MAP_FAILED)
    throw std::runtime_error("cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  auto address = reinterpret_cast<std::uintptr_t>(taken_);
  data_ = static_cast<std::byte*>(taken_) + (kPageBytes - address % kPageBytes) % kPageBytes;
}

Memory::~Memory() {
  if (from_malloc_) {
    std::free(taken_);
  } else {
    munmap(taken_, taken_bytes_);
  }
}

void fill_page(std::byte* page, std::uint64_t number, Content content, std::uint64_t seed) {
  auto* words = reinterpret_cast<std::uint64_t*>(page);
  constexpr std::size_t kWords = kPageBytes / sizeof *words;
  std::size_t random_words = content == Content::random ? kWords : content == Content::half ? kWords / 2 : 0;
  Random random(seed ^ (number + 1) * 0xD1B54A32D192ED03ull);
  for (std::size_t i = 0; i < random_words; ++i) words[i] = random.next();
  std::memset(words + random_words, 0, (kWords - random_words) * sizeof *words);
  words[0] = number;
}

void Memory::fill(Content content, std::uint64_t seed) {
  for (std::size_t page = 0; page < pages(); ++page) fill_page(data_ + page * kPageBytes, page, content, seed);
}

void Memory::forbid_writing(std::size_t piece_pages) {
  for (std::size_t page = 0; page < pages(); page += 2 * piece_pages)
    if (mprotect(data_ + page * kPageBytes, std::min(piece_pages, pages() - page) * kPageBytes, PROT_READ) != 0)
      throw std::runtime_error("cannot make page " + std::to_string(page) + " read-only: " + std::strerror(errno));
}

std::size_t resident_anonymous_bytes() {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  char line[128];
  std::size_t kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "RssAnon: %zu", &kib) == 1) break;
  std::fclose(file);
  return kib * 1024;
}

}  // namespace access_bench
