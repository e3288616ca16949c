#include "far/tcp/key_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/plain_file.hpp"
#include "base/raw_call.hpp"

namespace hinterland::far {
namespace {

Error with_remedy(Error error, const char* path) {
  error.remedy("make a key with: hinterland serve --make-key '%s'", path);
  return error;
}

// For a file that is there: --make-key overwrites nothing.
Error with_new_key(Error error) {
  error.remedy("make another with: hinterland serve --make-key FILE, and use it on all machines");
  return error;
}

std::size_t different_bytes(std::span<const unsigned char> bytes) {
  std::array<bool, 256> seen{};
  for (unsigned char byte : bytes) seen[byte] = true;
  return static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
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
    return std::unexpected(with_new_key(
        Error::make(0, "key file '%s' is too short: %zu bytes, at least %zu are needed", path, *size, kKeyBytesMin)));
  if (*size > kKeyBytesMax)
    return std::unexpected(
        with_new_key(Error::make(0, "key file '%s' is too long: more than %zu bytes", path, kKeyBytesMax)));
  std::span<const unsigned char> bytes(buffer.data(), *size);
  // How many there are is not said: it would tell something of the key.
  if (different_bytes(bytes) < kKeyDifferentMin)
    return std::unexpected(with_new_key(
        Error::make(0, "the key in '%s' is weak: it has fewer than %zu different bytes", path, kKeyDifferentMin)));
  SecretKey key(bytes);
  if (key.empty()) return std::unexpected(Error::make(ENOMEM, "no memory for the key"));
  return key;
}

// Past whatever stands in for mmap in a program: the key never lies in far memory. The thread sanitizer has to see
// both calls, or it takes the next thread that is given the address for one that races with the last.
#ifdef __SANITIZE_THREAD__
void* map_page() {
  void* page = mmap(nullptr, kKeyBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page != MAP_FAILED ? page : nullptr;
}
void unmap_page(void* page) { munmap(page, kKeyBytesMax); }
#else
void* map_page() {
  long page = raw::call(SYS_mmap, 0, kKeyBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return raw::failed(page) ? nullptr : reinterpret_cast<void*>(page);
}
void unmap_page(void* page) { raw::call(SYS_munmap, reinterpret_cast<long>(page), kKeyBytesMax); }
#endif

}  // namespace

SecretKey::SecretKey(std::span<const unsigned char> bytes) {
  HL_CHECK_OP(bytes.size(), <=, kKeyBytesMax);
  void* page = map_page();
  if (page == nullptr) return;
  raw::call(SYS_madvise, reinterpret_cast<long>(page), kKeyBytesMax, MADV_DONTDUMP);
  bytes_ = static_cast<unsigned char*>(page);
  size_ = bytes.size();
  std::memcpy(bytes_, bytes.data(), size_);
}

SecretKey::SecretKey(SecretKey&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  return *this;
}

SecretKey::~SecretKey() {
  if (bytes_ == nullptr) return;
  sodium_memzero(bytes_, kKeyBytesMax);
  unmap_page(bytes_);
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

Status make_key_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
  if (fd < 0) {
    Error error = Error::make(errno, "cannot make key file '%s'", path.c_str());
    if (error.code() == EEXIST)
      error.remedy("a key is never overwritten: give another name, or remove that file first");
    return std::unexpected(error);
  }
  std::array<unsigned char, kKeyBytesMin> key;
  // Read back, the key must be what was written: line ends at its end do not count.
  do randombytes_buf(key.data(), key.size());
  while (key.back() == '\n' || key.back() == '\r' || different_bytes(key) < kKeyDifferentMin);
  bool written = ::write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()) && ::fsync(fd) == 0;
  Error error = Error::make(errno, "cannot write key file '%s'", path.c_str());
  sodium_memzero(key.data(), key.size());
  ::close(fd);
  if (written) return {};
  ::unlink(path.c_str());
  return std::unexpected(error);
}

}  // namespace hinterland::far
