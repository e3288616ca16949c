// Numbers and texts in as few bytes as they need: 7 bits a byte, and differences folded so that small negative ones
// stay small. The reader never reads beyond its bytes, whatever they say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hinterland::trace {

class ByteWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void difference(std::uint64_t from, std::uint64_t to) {
    auto d = static_cast<std::int64_t>(to - from);
    number((static_cast<std::uint64_t>(d) << 1) ^ static_cast<std::uint64_t>(d >> 63));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  std::string_view view() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// After a read beyond the end, or of a number of more than 64 bits, failed() is true and all that follows is 0 or "".
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      std::uint8_t byte = rest_[0];
      rest_ = rest_.subspan(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail();
  }
  std::uint64_t difference(std::uint64_t from) {
    std::uint64_t folded = number();
    return from + ((folded >> 1) ^ (0 - (folded & 1)));
  }
  std::string text() {
    std::uint64_t size = number();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    std::string value(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  bool at_end() const { return rest_.empty(); }
  bool failed() const { return failed_; }

 private:
  std::uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  std::span<const std::uint8_t> rest_;
  bool failed_ = false;
};

}  // namespace hinterland::trace
