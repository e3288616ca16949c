#include "cli/figures_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/stats_folder.hpp"

namespace hinterland::cli {
namespace {

std::unexpected<Error> refused(int problem, const std::string& path) {
  if (problem == EPERM || problem == ELOOP || problem == ENOTDIR) {
    Error error =
        Error::make(0, "%s, for the figures of running programs, is not a folder of yours alone", path.c_str());
    return std::unexpected(
        error.remedy("remove it if it is yours, or chmod 700 it; if another user made it, name a "
                     "folder of your own with --stat-dir, or set XDG_RUNTIME_DIR"));
  }
  Error error = Error::make(problem, "%s, for the figures of running programs, cannot be opened", path.c_str());
  return std::unexpected(error.remedy("name a folder where you may write with --stat-dir"));
}

bool is_root() { return geteuid() == 0; }

}  // namespace

FiguresFolder::~FiguresFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<FiguresFolder> FiguresFolder::adopt(int descriptor, const std::string& path) {
  if (descriptor < 0) return refused(-descriptor, path);
  return FiguresFolder(descriptor, path);
}

Result<FiguresFolder> FiguresFolder::open(const std::string& path) {
  return adopt(open_statistics_folder(AT_FDCWD, path.c_str(), is_root()), path);
}

Result<FiguresFolder> FiguresFolder::make(const std::string& path) {
  return adopt(make_statistics_folder(path.c_str()), path);
}

std::vector<std::string> FiguresFolder::names() const {
  std::vector<std::string> names;
  int again = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // from its beginning, at each look
  DIR* directory = again < 0 ? nullptr : fdopendir(again);
  if (directory == nullptr) {
    if (again >= 0) close(again);
    return names;
  }
  while (const dirent* entry = readdir(directory)) names.emplace_back(entry->d_name);
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

Result<FiguresFolder> FiguresFolder::below(const std::string& name) const {
  return adopt(open_statistics_folder(descriptor_, name.c_str(), is_root()), path_ + "/" + name);
}

Status FiguresFolder::make_below(const std::string& name) const {
  if (mkdirat(descriptor_, name.c_str(), 0700) == 0) return {};
  Error error =
      Error::make(errno, "%s/%s, for the figures of running programs, cannot be made", path_.c_str(), name.c_str());
  return std::unexpected(error.remedy("name a folder that can be written with --stat-dir"));
}

int FiguresFolder::open_file(const std::string& name, bool writable) const {
  int flags = (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int file = openat(descriptor_, name.c_str(), flags);
  return file >= 0 ? file : -errno;
}

void FiguresFolder::remove(const std::string& name) const { unlinkat(descriptor_, name.c_str(), 0); }
void FiguresFolder::remove_folder(const std::string& name) const {
  unlinkat(descriptor_, name.c_str(), AT_REMOVEDIR);
}

}  // namespace hinterland::cli
