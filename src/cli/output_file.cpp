#include "cli/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace hinterland::cli {

Status write_file(const std::string& path, const std::string& bytes, bool force) {
  if (path == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return {};
  }
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  int file = open(path.c_str(), flags, 0644);
  if (file < 0) {
    Error error = Error::make(errno, "%s cannot be written", path.c_str());
    return std::unexpected(errno == EEXIST ? error.remedy("name another file, or use --force") : error);
  }
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 0) {
    ssize_t written = write(file, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  int problem = left > 0 ? errno : 0;
  if (close(file) != 0 && problem == 0) problem = errno;
  if (problem == 0) return {};
  return std::unexpected(Error::make(problem, "%s cannot be written", path.c_str()));
}

}  // namespace hinterland::cli
