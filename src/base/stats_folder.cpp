#include "base/stats_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/raw_call.hpp"

// System calls are raw, as in stats.cpp: the preloaded library interposes the functions.

namespace hinterland {
namespace {

constexpr unsigned kOthersWrite = 022;
constexpr unsigned kOthersAnything = 077;

// The XDG base directory specification: a program must not use one that is not the user's alone.
bool is_own_runtime_directory(const char* path) {
  struct stat status;
  return path[0] == '/' && raw::checked(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & kOthersAnything) == 0;
}

}  // namespace

void default_statistics_directory(char* path, std::size_t size) {
  constexpr std::size_t kRoomBelow = 96;  // for the folder of one run, and the rings of a trace in it
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && std::strlen(runtime) + kRoomBelow < size && is_own_runtime_directory(runtime))
    std::snprintf(path, size, "%s/hinterland", runtime);
  else
    std::snprintf(path, size, "/dev/shm/hinterland-%u", static_cast<unsigned>(geteuid()));
}

void statistics_directory(char* path, std::size_t size) {
  const char* chosen = std::getenv("HINTERLAND_STAT_DIR");
  if (chosen != nullptr && chosen[0] != '\0')
    std::snprintf(path, size, "%s", chosen);
  else
    default_statistics_directory(path, size);
}

int open_statistics_folder(int at, const char* path, bool of_anybody) {
  long folder = raw::checked(SYS_openat, at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (folder < 0) return -errno;
  struct stat status;
  int problem = 0;
  if (raw::checked(SYS_fstat, folder, &status) < 0)
    problem = -errno;
  else if ((status.st_uid != geteuid() && !of_anybody) || (status.st_mode & kOthersWrite) != 0)
    problem = -EPERM;
  if (problem == 0) return static_cast<int>(folder);
  raw::checked(SYS_close, folder);
  return problem;
}

int make_statistics_folder(const char* path) {
  if (raw::checked(SYS_mkdir, path, 0700) < 0 && errno != EEXIST) return -errno;
  return open_statistics_folder(AT_FDCWD, path, false);
}

void statistics_file_name(char* name, std::size_t size, pid_t process) {
  std::snprintf(name, size, "%d-%llu", static_cast<int>(process),
                static_cast<unsigned long long>(namespace_number("/proc/self/ns/pid")));
}

std::uint64_t namespace_number(const char* link) {
  char text[64];
  long used = raw::checked(SYS_readlinkat, AT_FDCWD, link, text, sizeof text - 1);
  if (used <= 0) return 0;
  text[used] = '\0';
  const char* number = std::strchr(text, '[');
  return number != nullptr ? std::strtoull(number + 1, nullptr, 10) : 0;
}

}  // namespace hinterland
