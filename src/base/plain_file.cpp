#include "base/plain_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/size.hpp"

namespace hinterland {
namespace {

std::unexpected<Error> failed(int code, const char* what, const std::string& path) {
  return std::unexpected(Error::make(code, "%s %s cannot be read", what, path.c_str()));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status check(const struct stat& status, const char* what, const std::string& path, std::uint64_t bytes_max) {
  if (!S_ISREG(status.st_mode)) {
    Error error = Error::make(0, "%s %s cannot be read: it is not a regular file but %s", what, path.c_str(),
                              kind_of(status.st_mode));
    return std::unexpected(error.remedy("name a file; what comes out of a pipe or a device is put into one before"));
  }
  if (static_cast<std::uint64_t>(status.st_size) <= bytes_max) return {};
  Error error = Error::make(0, "%s %s cannot be read: it has %s, more than the %s that such a file may have", what,
                            path.c_str(), rounded_size_text(static_cast<std::uint64_t>(status.st_size)).c_str(),
                            rounded_size_text(bytes_max).c_str());
  return std::unexpected(error.remedy("is it the right file?"));
}

}  // namespace

Result<int> open_plain_file(const std::string& path, const char* what, std::uint64_t bytes_max) {
  struct stat status{};
  // Before, because opening alone may rewind a tape; and behind, because it may be another file by then.
  if (stat(path.c_str(), &status) != 0) return failed(errno, what, path);
  if (Status plain = check(status, what, path, bytes_max); !plain) return std::unexpected(plain.error());
  int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return failed(errno, what, path);
  Status plain;
  if (fstat(file, &status) != 0)
    plain = failed(errno, what, path);
  else
    plain = check(status, what, path, bytes_max);
  if (plain) return file;
  close(file);
  return std::unexpected(plain.error());
}

Result<std::string> read_plain_file(const std::string& path, const char* what, std::uint64_t bytes_max) {
  constexpr std::size_t kPiece = 64 * 1024;
  Result<int> file = open_plain_file(path, what, bytes_max);
  if (!file) return std::unexpected(file.error());
  std::string text;
  int problem = 0;
  // To its end, not to its size: files below /proc say 0, and another may be writing to it.
  for (;;) {
    std::size_t used = text.size();
    text.resize(used + kPiece);
    ssize_t got = read(*file, text.data() + used, kPiece);
    problem = got < 0 ? errno : 0;
    text.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (problem == EINTR) continue;
    if (got <= 0 || text.size() > bytes_max) break;
  }
  close(*file);
  if (problem == 0 && text.size() > bytes_max) problem = EFBIG;
  if (problem != 0) return failed(problem, what, path);
  return text;
}

}  // namespace hinterland
