// The pre-shared key of a memory server and its clients, read from a file.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/error.hpp"

namespace hinterland::far {

inline constexpr std::size_t kKeyBytesMin = 16;  // 128 bits, when the file holds random bytes
inline constexpr std::size_t kKeyBytesMax = 4096;

// A secret, overwritten with zeros when it goes. Lives inline: never in memory that was freed but not cleared.
class SecretKey {
 public:
  SecretKey() = default;
  explicit SecretKey(std::span<const unsigned char> bytes);
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  ~SecretKey();

  bool empty() const { return size_ == 0; }
  std::span<const unsigned char> bytes() const { return {bytes_.data(), size_}; }

 private:
  void clear();
  std::array<unsigned char, kKeyBytesMax> bytes_{};
  std::size_t size_ = 0;
};

// Reads a key file: a regular file that only its owner can read or write, kKeyBytesMin to kKeyBytesMax bytes, not
// counting line ends at its end (so that a key typed into an editor and one written by printf are the same).
// Blocks on the file system. The errors name the path and never the contents.
Result<SecretKey> read_key_file(const std::string& path);

}  // namespace hinterland::far
