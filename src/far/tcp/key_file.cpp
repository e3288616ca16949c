#include "far/tcp/key_file.hpp"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/plain_file.hpp"

namespace hinterland::far {
namespace {

Error with_remedy(Error error, const char* path) {
  error.remedy("make a key with: (umask 077; head -c 32 /dev/urandom | base64 > '%s')", path);
  return error;
}

// One byte more than allowed, to tell "too long" from "exactly".
using Buffer = std::array<unsigned char, kKeyBytesMax + 3>;

Result<std::size_t> read_all(int fd, const char* path, Buffer& buffer) {
  std::size_t size = 0;
  while (size < buffer.size()) {
    ssize_t n = ::read(fd, buffer.data() + size, buffer.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(Error::make(errno, "cannot read key file '%s'", path));
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  // Full: there may be more, so its last bytes are not the file's, and line ends among them do not end the key.
  if (size == buffer.size()) return size;
  while (size > 0 && (buffer[size - 1] == '\n' || buffer[size - 1] == '\r')) --size;
  return size;
}

Status check_mode(int fd, const char* path) {
  struct stat status;
  if (fstat(fd, &status) != 0) return std::unexpected(Error::make(errno, "cannot examine key file '%s'", path));
  if ((status.st_mode & 077) != 0) {
    Error error = Error::make(0, "key file '%s' can be used by others than its owner (mode %04o)", path,
                              static_cast<unsigned>(status.st_mode & 07777));
    error.remedy("run: chmod 600 '%s'; if others may have read it, make a new key", path);
    return std::unexpected(error);
  }
  return {};
}

Result<SecretKey> read_key(int fd, const char* path, Buffer& buffer) {
  if (Status status = check_mode(fd, path); !status) return std::unexpected(status.error());
  Result<std::size_t> size = read_all(fd, path, buffer);
  if (!size) return std::unexpected(size.error());
  if (*size < kKeyBytesMin)
    return std::unexpected(with_remedy(
        Error::make(0, "key file '%s' is too short: %zu bytes, at least %zu are needed", path, *size, kKeyBytesMin),
        path));
  if (*size > kKeyBytesMax)
    return std::unexpected(
        with_remedy(Error::make(0, "key file '%s' is too long: more than %zu bytes", path, kKeyBytesMax), path));
  return SecretKey(std::span<const unsigned char>(buffer.data(), *size));
}

}  // namespace

SecretKey::SecretKey(std::span<const unsigned char> bytes) : size_(bytes.size()) {
  HL_CHECK_OP(bytes.size(), <=, kKeyBytesMax);
  std::memcpy(bytes_.data(), bytes.data(), bytes.size());
}

SecretKey::SecretKey(SecretKey&& other) noexcept : SecretKey(other.bytes()) { other.clear(); }

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this == &other) return *this;
  clear();
  size_ = other.size_;
  std::memcpy(bytes_.data(), other.bytes_.data(), size_);
  other.clear();
  return *this;
}

SecretKey::~SecretKey() { clear(); }

void SecretKey::clear() {
  sodium_memzero(bytes_.data(), bytes_.size());
  size_ = 0;
}

Result<SecretKey> read_key_file(const std::string& path) {
  Result<int> file = open_plain_file(path, "key file");  // its length is looked at below
  // What is no regular file is nothing to write a key into.
  if (!file && file.error().code() != 0) return std::unexpected(with_remedy(file.error(), path.c_str()));
  if (!file) return std::unexpected(file.error());
  Buffer buffer;
  Result<SecretKey> key = read_key(*file, path.c_str(), buffer);
  sodium_memzero(buffer.data(), buffer.size());
  ::close(*file);
  return key;
}

}  // namespace hinterland::far
