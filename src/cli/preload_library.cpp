#include "cli/preload_library.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace hinterland::cli {
namespace {

constexpr const char* kName = "libhinterland-preload.so";
constexpr const char* kPlaces[] = {"lib", "lib/x86_64-linux-gnu", "lib64"};

}  // namespace

Result<std::string> find_preload_library() {
  std::error_code problem;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) return std::unexpected(Error::make(problem.value(), "/proc/self/exe"));
  std::filesystem::path prefix = self.parent_path().parent_path();
  for (const char* place : kPlaces) {
    std::string path = (prefix / place / kName).string();
    if (access(path.c_str(), R_OK) != 0) continue;
    if (path.find_first_of(" :") == std::string::npos) return path;
    Error error = Error::make(0, "%s: its path has a space or a colon, which LD_PRELOAD cannot hold", path.c_str());
    return std::unexpected(error.remedy("install Hinterland in another directory"));
  }
  Error error = Error::make(0, "%s is not in %s/lib", kName, prefix.c_str());
  return std::unexpected(error.remedy("build or install it beside this command ('make', 'make install')"));
}

std::string preload_list(const std::string& library, const char* existing) {
  std::string list = library;
  std::string rest = existing != nullptr ? existing : "";
  for (std::size_t at = 0; at < rest.size();) {
    std::size_t end = std::min(rest.find_first_of(" :", at), rest.size());
    std::string entry = rest.substr(at, end - at);
    if (!entry.empty() && entry != library) list += ":" + entry;
    at = end + 1;
  }
  return list;
}

}  // namespace hinterland::cli
