// What tests of guards share: a window over a heap, and the guards as a compiler writes them.
#pragma once

#include "object/guard_entries.hpp"
#include "object/guards.hpp"
#include "object/test_support.hpp"

namespace hinterland::object::testing {

class WindowForTest {
 public:
  explicit WindowForTest(const std::string& url = "mem:", std::uint64_t local_bytes = HeapOptions::kLocalBytesMin)
      : heap_(url, local_bytes) {
    if (Status begun = begin_window(); !begun) {
      error_ = begun.error().what();
    }
  }
  ~WindowForTest() { end_window(); }
  WindowForTest(const WindowForTest&) = delete;
  WindowForTest& operator=(const WindowForTest&) = delete;

  Window* operator->() const { return current_window(); }
  // Why this machine cannot have one; empty if it can.
  const std::string& error() const { return error_; }

 private:
  HeapForTest heap_;
  std::string error_;
};

// Not a failure: the kernel, the processor or the sanitizer leaves no room for a window here.
#define HL_WINDOW_OR_SKIP(window_) \
  if (current_window() == nullptr) GTEST_SKIP() << "no object window here: " << (window_).error()

#define HL_GUARD_OF(size_, type_)                                                            \
  inline std::uint64_t guarded_read_##size_(const void* address) {                           \
    std::uint64_t value;                                                                     \
    register const void* at __asm__("r11") = address;                                        \
    __asm__ volatile("sub $128, %%rsp\n\tcall hl_guard_read_" #size_ "\n\tsub $-128, %%rsp"  \
                     : "=a"(value), "+r"(at)                                                 \
                     :                                                                       \
                     : "rcx", "r10", "cc", "memory");                                        \
    return value;                                                                            \
  }                                                                                          \
  inline void guarded_write_##size_(void* address, type_ value) {                            \
    register void* at __asm__("r11") = address;                                              \
    __asm__ volatile("sub $128, %%rsp\n\tcall hl_guard_write_" #size_ "\n\tsub $-128, %%rsp" \
                     : "+r"(at)                                                              \
                     : "d"(static_cast<std::uint64_t>(value))                                \
                     : "rax", "rcx", "r10", "cc", "memory");                                 \
  }
HL_GUARD_OF(1, std::uint8_t)
HL_GUARD_OF(2, std::uint16_t)
HL_GUARD_OF(4, std::uint32_t)
HL_GUARD_OF(8, std::uint64_t)
#undef HL_GUARD_OF

inline std::uint64_t guarded_read(const std::uint64_t* address) { return guarded_read_8(address); }
inline void guarded_write(std::uint64_t* address, std::uint64_t value) { guarded_write_8(address, value); }

// Blocks of `words` words each, all of which follow from their number.
class Blocks {
 public:
  Blocks(std::size_t count, std::size_t words) : words_(words) {
    for (std::size_t i = 0; i < count; ++i) {
      auto* block = static_cast<std::uint64_t*>(allocate_block(words * 8, false));
      if (block == nullptr) {
        ADD_FAILURE() << "no block";
        return;
      }
      all_.push_back(block);
      fill(i, i);
    }
  }
  ~Blocks() {
    for (std::uint64_t* block : all_) release_block(block);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  std::size_t size() const { return all_.size(); }
  std::uint64_t* operator[](std::size_t i) const { return all_[i]; }
  static std::uint64_t word_of(std::uint64_t id, std::size_t at) { return (id + 1) * 0x9e3779b97f4a7c15 + at; }
  void fill(std::size_t i, std::uint64_t id) {
    for (std::size_t at = 0; at < words_; ++at) guarded_write(all_[i] + at, word_of(id, at));
  }
  bool holds(std::size_t i, std::uint64_t id) const {
    for (std::size_t at = 0; at < words_; ++at)
      if (guarded_read(all_[i] + at) != word_of(id, at)) return false;
    return true;
  }
  std::size_t count_wrong(std::uint64_t offset = 0) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) wrong += !holds(i, i + offset);
    return wrong;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t*> all_;
};

}  // namespace hinterland::object::testing
