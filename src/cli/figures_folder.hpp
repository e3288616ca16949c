// An open folder of statistics pages. Whatever stands in it may have been put there by another: names are looked up
// from the descriptor, links are not followed, and nothing is waited for (base/stats_folder.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hinterland::cli {

// Move-only.
class FiguresFolder {
 public:
  // Errors carry ENOENT when there is none; all others say what is wrong with the folder, and what to do.
  static Result<FiguresFolder> open(const std::string& path);
  // Made, when there is none.
  static Result<FiguresFolder> make(const std::string& path);
  ~FiguresFolder();
  FiguresFolder(FiguresFolder&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  FiguresFolder& operator=(FiguresFolder&&) = delete;

  const std::string& path() const { return path_; }  // for messages
  std::vector<std::string> names() const;            // sorted
  Result<FiguresFolder> below(const std::string& name) const;
  Status make_below(const std::string& name) const;
  int open_file(const std::string& name, bool writable) const;  // a descriptor, or -errno
  // Whether it could be done is not said: another may have been faster.
  void remove(const std::string& name) const;
  void remove_folder(const std::string& name) const;

 private:
  static Result<FiguresFolder> adopt(int descriptor, const std::string& path);
  FiguresFolder(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

}  // namespace hinterland::cli
