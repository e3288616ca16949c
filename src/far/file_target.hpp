// Opens what `file:` names and makes sure that it may be overwritten, is large enough and leaves nothing behind.
//
// A regular file is created anew and unlinked at once: nothing is left after any end, kill -9 included. What has that
// name already is refused, unless it is ours (it begins with our header: left by a process killed between the two
// steps). A block device must begin with zeros or our header, and is opened exclusively.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "kernel/kept_file.hpp"

namespace hinterland::far {

struct FileSettings {
  std::string path;
  // 0: for a regular file three quarters of the file system's free space, at most 64 GiB; else the whole device.
  std::uint64_t size_bytes = 0;
  bool direct = true;        // bypass the page cache (O_DIRECT) where the file system can
  bool asynchronous = true;  // Linux AIO, where there is that and O_DIRECT
};

class FileTarget {
 public:
  // Page 0 of the file; far pages follow.
  static constexpr std::uint64_t kHeaderBytes = 4096;

  static Result<FileTarget> open(const FileSettings& settings);

  int fd() const { return file_->descriptor(); }
  bool is_here() const { return file_->is_here(); }
  // After a call with `lost` failed with EBADF: whether fd() is the file again.
  bool take_back(int lost) const { return file_->take_back(lost); }
  std::uint64_t bytes() const { return bytes_; }  // for pages: whole slabs, without the header
  bool direct() const { return direct_; }

 private:
  std::unique_ptr<KeptFile> file_;
  std::uint64_t bytes_ = 0;
  bool direct_ = false;
};

}  // namespace hinterland::far
