// What is accessed: an allocation whose every page can be told from every other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace access_bench {

inline constexpr std::size_t kPageBytes = 4096;

enum class Content { random, half, zero };  // incompressible, half-compressible, all zero but for the page's number

// Memory as a program takes it: anonymous pages, from mmap or from malloc. Nothing is touched by taking it.
class Memory {
 public:
  Memory(std::size_t bytes, bool from_malloc);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t pages() const { return bytes_ / kPageBytes; }
  // The first word of a page: the page's number after fill().
  volatile std::uint64_t* word(std::size_t page) const {
    return reinterpret_cast<volatile std::uint64_t*>(data_ + page * kPageBytes);
  }
  void fill(Content content, std::uint64_t seed);
  // Every second piece of so many pages, from the first on. Throws std::runtime_error where the kernel refuses.
  void forbid_writing(std::size_t piece_pages);

 private:
  std::size_t bytes_;
  void* taken_;
  std::size_t taken_bytes_;
  bool from_malloc_;
  std::byte* data_;
};

// Fills a page-sized buffer with content; the first word is `number`.
void fill_page(std::byte* page, std::uint64_t number, Content content, std::uint64_t seed);

// xorshift64: the same numbers on every machine for a seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

 private:
  std::uint64_t state_;
};

// RssAnon of this process, in bytes; 0 when /proc does not say.
std::size_t resident_anonymous_bytes();

}  // namespace access_bench
