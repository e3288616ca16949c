// Cuts the bytes of a fuzzer into numbers and texts, and puts bytes into a file for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/check.hpp"

namespace hinterland::testing {

// Never fails: beyond the end are zeros and empty texts.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }

  template <typename T>
  T take() {
    T value{};
    std::size_t size = std::min(sizeof(T), rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  std::span<const std::uint8_t> take_bytes(std::size_t size) {
    auto bytes = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  // Up to the next byte `end`, which is dropped.
  std::string take_text(std::uint8_t end = 0) {
    auto at = std::find(rest_.begin(), rest_.end(), end);
    std::string text(rest_.begin(), at);
    rest_ = rest_.subspan(std::min(text.size() + 1, rest_.size()));
    return text;
  }
  std::string take_rest() {
    std::string text(rest_.begin(), rest_.end());
    rest_ = {};
    return text;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

// A file in memory, reached by a path of this process. Only for readers that follow a link.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    HL_CHECK(descriptor_ >= 0);
    ::fchmod(descriptor_, 0600);
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }
  void hold(std::string_view bytes) {
    HL_CHECK(::ftruncate(descriptor_, 0) == 0);
    HL_CHECK_OP(::pwrite(descriptor_, bytes.data(), bytes.size(), 0), ==, static_cast<ssize_t>(bytes.size()));
  }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace hinterland::testing
