// The pre-shared key of a memory server and its clients, read from a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.hpp"

namespace hinterland::far {

inline constexpr std::size_t kKeyBytesMin = 32;
// 32 random bytes have fewer about once in 10^12 times, their base64 or hex hardly more often; words people type, and
// what they repeat to get the length, often do.
inline constexpr std::size_t kKeyDifferentMin = 12;
inline constexpr std::size_t kKeyBytesMax = 4096;

// A secret, overwritten with zeros when it goes. It lies in a page of its own, which no core file has
// (MADV_DONTDUMP: the kernel's do not, nor those of `hinterland core`), and never in memory that was freed but not
// cleared. Empty when there was no memory for it.
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
  std::span<const unsigned char> bytes() const { return {bytes_, size_}; }

 private:
  unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// Reads a key file: a regular file that only its owner can read or write, kKeyBytesMin to kKeyBytesMax bytes, not
// counting line ends at its end (so that a key typed into an editor and one written by printf are the same). A key
// with fewer than kKeyDifferentMin different bytes is refused as weak: whoever calls the server gets a proof of it,
// and could try such keys out. Blocks on the file system. The errors name the path and never the contents.
Result<SecretKey> read_key_file(const std::string& path);

// Writes kKeyBytesMin random bytes to a file that must not exist yet, and that only its owner can read.
Status make_key_file(const std::string& path);

}  // namespace hinterland::far
