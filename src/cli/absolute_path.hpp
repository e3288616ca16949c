// Paths for processes that may be in another folder.
#pragma once

#include <filesystem>
#include <string>

namespace hinterland::cli {

// "" if it is gone: then nothing can be found from here, and paths stay as they are.
inline std::string current_folder() {
  std::error_code gone;
  return std::filesystem::current_path(gone).string();
}

// Links and ".." stay, so that messages say what was given.
inline std::string absolute_path(const std::string& path) {
  std::string folder = path.empty() || path[0] == '/' ? "" : current_folder();
  return folder.empty() ? path : folder + "/" + path;
}

}  // namespace hinterland::cli
