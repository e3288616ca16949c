// What is done to an object before it would be sent: compressed by Snappy, encrypted by AES-128 in CBC mode
// (OpenSSL).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct evp_cipher_ctx_st;

namespace webservice {

// One thread, or fiber, at a time. Throws std::runtime_error when the library fails.
class Sealer {
 public:
  explicit Sealer(std::size_t object_bytes);
  ~Sealer();

  // The sealed object: valid until the next call. Each request has an initial vector of its own.
  std::span<const unsigned char> seal(const std::byte* object, std::uint64_t request);
  // The object again.
  std::vector<std::byte> open(std::span<const unsigned char> sealed, std::uint64_t request);

 private:
  std::size_t object_bytes_;
  std::vector<char> compressed_;
  std::vector<unsigned char> sealed_;
  evp_cipher_ctx_st* context_;
};

}  // namespace webservice
