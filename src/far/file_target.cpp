#include "far/file_target.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/size.hpp"
#include "far/descriptor_set.hpp"
#include "far/device.hpp"

namespace hinterland::far {
namespace {

constexpr std::uint64_t kDefaultMax = 64 * kGiB;
constexpr std::array<char, 32> kMagic = {"hinterland far memory file v1\n"};
// File systems, volume managers and swap put their marks into the first megabyte.
constexpr std::size_t kMarksBytes = kMiB;

struct alignas(kPageSize) HeaderPage {
  std::array<char, kPageSize> bytes{};
};

std::unexpected<Error> refuse(int code, const std::string& what, const std::string& remedy) {
  Error error = Error::make(code, "file: %s", what.c_str());
  error.remedy("%s", remedy.c_str());
  return std::unexpected(error);
}

std::unexpected<Error> cannot_open(int code, const std::string& path) {
  if (code == ENOENT || code == ENOTDIR)
    return refuse(code, "cannot create " + path, "make its directory first, or name another");
  if (code == EBUSY) return refuse(code, path + " is mounted or in use", "name a device that nobody uses");
  return refuse(code, "cannot open " + path, "name a place where you may write, for example /var/tmp/NAME");
}

// O_DIRECT where the file system takes it; set after opening, because some create the file before they refuse it.
int open_maybe_direct(const std::string& path, int flags, bool& direct) {
  int fd = ::open(path.c_str(), flags, 0600);
  if (fd >= 0 && direct) direct = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) == 0;
  return fd;
}

bool begins_with_header(const std::string& path) {
  std::array<char, kMagic.size()> bytes{};
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  bool ours = pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) && bytes == kMagic;
  close(fd);
  return ours;
}

// A write of the header page: O_DIRECT may be accepted by open() and refused here.
int write_header(int fd, bool& direct) {
  HeaderPage header;
  std::copy(kMagic.begin(), kMagic.end(), header.bytes.begin());
  for (;;) {
    ssize_t done = pwrite(fd, header.bytes.data(), kPageSize, 0);
    if (done == static_cast<ssize_t>(kPageSize)) return 0;
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EINVAL && direct) {
      direct = false;
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
      continue;
    }
    return done < 0 ? errno : EIO;
  }
}

std::unexpected<Error> no_space(const std::string& path, std::uint64_t needed, std::uint64_t free) {
  return refuse(ENOSPC,
                path + " needs " + rounded_size_text(needed) + ", its file system has " + rounded_size_text(free) +
                    " free: " + std::to_string(needed - std::min(needed, free)) + " bytes are missing",
                "give a smaller ?size=, or free some space");
}

std::uint64_t free_bytes(int fd) {
  struct statvfs space{};
  if (fstatvfs(fd, &space) != 0) return 0;
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

// Takes the space for a regular file now, so that no write can fail for the lack of it later; its size.
Result<std::uint64_t> reserve_space(int fd, const FileSettings& settings) {
  std::uint64_t free = free_bytes(fd), size = settings.size_bytes;
  if (size == 0) size = std::max<std::uint64_t>(std::min(free / 4 * 3, kDefaultMax), kSlabBytes);
  size -= size % kSlabBytes;
  std::uint64_t total = size + FileTarget::kHeaderBytes;
  if (total > free) return no_space(settings.path, total, free);
  rlimit limit{};
  // Going beyond it would raise SIGXFSZ.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && total > limit.rlim_cur)
    return refuse(EFBIG,
                  settings.path + " needs " + rounded_size_text(total) + ", the file size limit is " +
                      rounded_size_text(limit.rlim_cur),
                  "raise the limit (ulimit -f unlimited) or give a smaller ?size=");
  int failed;
  do failed = fallocate(fd, 0, 0, static_cast<off_t>(total)) == 0 ? 0 : errno;
  while (failed == EINTR);
  // A file system that cannot reserve: the file is sparse, and a full disk shows as ENOSPC of a write.
  if (failed == EOPNOTSUPP) failed = ftruncate(fd, static_cast<off_t>(total)) == 0 ? 0 : errno;
  if (failed == ENOSPC) return no_space(settings.path, total, free_bytes(fd));
  if (failed != 0)
    return refuse(failed, "cannot reserve " + rounded_size_text(total) + " for " + settings.path,
                  "give a smaller ?size=");
  return size;
}

Result<std::uint64_t> check_block_device(int fd, const FileSettings& settings) {
  std::uint64_t device_bytes = 0;
  if (ioctl(fd, BLKGETSIZE64, &device_bytes) != 0)
    return refuse(errno, "cannot ask " + settings.path + " for its size", "name a block device");
  std::uint64_t room = device_bytes > FileTarget::kHeaderBytes ? device_bytes - FileTarget::kHeaderBytes : 0;
  std::uint64_t size = settings.size_bytes != 0 ? settings.size_bytes : room;
  size -= size % kSlabBytes;
  if (size == 0 || size > room)
    return refuse(ENOSPC, settings.path + " has " + rounded_size_text(device_bytes), "give a smaller ?size=");
  auto marks = std::make_unique<std::array<HeaderPage, kMarksBytes / kPageSize>>();
  if (pread(fd, marks->data(), kMarksBytes, 0) != static_cast<ssize_t>(kMarksBytes))
    return refuse(EIO, "cannot read " + settings.path, "check the device");
  const char* bytes = marks->front().bytes.data();
  bool empty = bytes[0] == 0 && std::memcmp(bytes, bytes + 1, kMarksBytes - 1) == 0;
  if (!empty && std::memcmp(bytes, kMagic.data(), kMagic.size()) != 0)
    return refuse(0, settings.path + " holds data that is not ours",
                  "if nobody needs it: blkdiscard -z or dd if=/dev/zero of=" + settings.path + " bs=1M count=1");
  return size;
}

Result<int> moved_high(int fd, const std::string& path) {
  const int moved = DescriptorSet::move_high(fd);
  if (moved < 0) return refuse(-moved, "the program closed " + path + " while it was opened", "open it again");
  return moved;
}

// Creates the file and takes its name away again.
Result<int> create_unnamed(const FileSettings& settings, bool& direct) {
  const char* path = settings.path.c_str();
  int fd = open_maybe_direct(settings.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, direct);
  if (fd < 0) return cannot_open(errno, settings.path);
  int failed = write_header(fd, direct);
  unlink(path);
  if (failed == 0) return moved_high(fd, settings.path);
  close(fd);
  return refuse(failed, "cannot write " + settings.path, "name another place, for example in /var/tmp");
}

}  // namespace

Result<FileTarget> FileTarget::open(const FileSettings& settings) {
  FileTarget target;
  target.direct_ = settings.direct;
  struct stat found{};
  bool exists = lstat(settings.path.c_str(), &found) == 0;
  if (exists && S_ISLNK(found.st_mode) && stat(settings.path.c_str(), &found) == 0 && !S_ISBLK(found.st_mode))
    return refuse(0, settings.path + " is a symbolic link", "name a file that does not exist yet");
  if (exists && S_ISBLK(found.st_mode)) {
    int device = open_maybe_direct(settings.path, O_RDWR | O_EXCL | O_CLOEXEC, target.direct_);
    if (device < 0) return cannot_open(errno, settings.path);
    auto moved = moved_high(device, settings.path);
    if (!moved) return std::unexpected(moved.error());
    target.file_ = std::make_unique<KeptFile>(*moved);
    auto size = check_block_device(target.fd(), settings);
    if (!size) return std::unexpected(size.error());
    target.bytes_ = *size;
    if (int failed = write_header(target.fd(), target.direct_); failed != 0)
      return refuse(failed, "cannot write " + settings.path, "check the device");
    return target;
  }
  if (exists && S_ISDIR(found.st_mode))
    return refuse(0, settings.path + " is a directory", "name a file in it: " + settings.path + "/far");
  if (exists && (!S_ISREG(found.st_mode) || !begins_with_header(settings.path)))
    return refuse(0, settings.path + " exists and is not ours", "name a file that does not exist yet, or remove it");
  if (exists && unlink(settings.path.c_str()) != 0) return cannot_open(errno, settings.path);
  auto fd = create_unnamed(settings, target.direct_);
  if (!fd) return std::unexpected(fd.error());
  target.file_ = std::make_unique<KeptFile>(*fd);
  auto size = reserve_space(target.fd(), settings);
  if (!size) return std::unexpected(size.error());
  target.bytes_ = *size;
  return target;
}

}  // namespace hinterland::far
