#include "webservice/sealer.hpp"

#include <openssl/evp.h>
#include <snappy.h>

#include <cstring>
#include <stdexcept>

#include "common/random.hpp"

namespace webservice {
namespace {

constexpr std::size_t kBlockBytes = 16;
constexpr unsigned char kKey[kBlockBytes] = {'n', 'o', ' ', 's', 'e', 'c', 'r', 'e',
                                             't', ' ', 'a', 't', ' ', 'a', 'l', 'l'};

struct InitialVector {
  explicit InitialVector(std::uint64_t request) {
    std::uint64_t words[] = {apps::mixed(request), request};
    std::memcpy(bytes, words, sizeof bytes);
  }
  unsigned char bytes[kBlockBytes];
};

void check(int result, const char* what) {
  if (result != 1) throw std::runtime_error(std::string("libcrypto: ") + what + " failed");
}

}  // namespace

Sealer::Sealer(std::size_t object_bytes)
    : object_bytes_(object_bytes),
      compressed_(snappy::MaxCompressedLength(object_bytes)),
      sealed_(compressed_.size() + kBlockBytes),
      context_(EVP_CIPHER_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

Sealer::~Sealer() { EVP_CIPHER_CTX_free(context_); }

std::span<const unsigned char> Sealer::seal(const std::byte* object, std::uint64_t request) {
  std::size_t size = 0;
  snappy::RawCompress(reinterpret_cast<const char*>(object), object_bytes_, compressed_.data(), &size);
  InitialVector vector(request);
  int done = 0, last = 0;
  check(EVP_EncryptInit_ex(context_, EVP_aes_128_cbc(), nullptr, kKey, vector.bytes), "starting to encrypt");
  check(EVP_EncryptUpdate(context_, sealed_.data(), &done, reinterpret_cast<const unsigned char*>(compressed_.data()),
                          static_cast<int>(size)),
        "encrypting");
  check(EVP_EncryptFinal_ex(context_, sealed_.data() + done, &last), "encrypting the last block");
  return {sealed_.data(), static_cast<std::size_t>(done + last)};
}

std::vector<std::byte> Sealer::open(std::span<const unsigned char> sealed, std::uint64_t request) {
  std::vector<unsigned char> compressed(sealed.size() + kBlockBytes);
  InitialVector vector(request);
  int done = 0, last = 0;
  check(EVP_DecryptInit_ex(context_, EVP_aes_128_cbc(), nullptr, kKey, vector.bytes), "starting to decrypt");
  check(EVP_DecryptUpdate(context_, compressed.data(), &done, sealed.data(), static_cast<int>(sealed.size())),
        "decrypting");
  check(EVP_DecryptFinal_ex(context_, compressed.data() + done, &last), "decrypting the last block");
  auto* text = reinterpret_cast<const char*>(compressed.data());
  std::size_t size = 0;
  std::vector<std::byte> object;
  if (snappy::GetUncompressedLength(text, static_cast<std::size_t>(done + last), &size)) object.resize(size);
  if (!snappy::RawUncompress(text, static_cast<std::size_t>(done + last), reinterpret_cast<char*>(object.data())))
    throw std::runtime_error("Snappy cannot decompress what it has compressed");
  return object;
}

}  // namespace webservice
