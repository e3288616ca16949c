#include "cli/preload_library.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace hinterland::cli {
namespace {

constexpr const char* kPlaces[] = {"lib", "lib/x86_64-linux-gnu", "lib64"};

// Beside this executable, or an error that says where it was looked for.
Result<std::string> find_beside(const char* name, const char* remedy) {
  std::error_code problem;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem)
    return std::unexpected(Error::make(problem.value(), "cannot tell from /proc/self/exe where this command is")
                               .remedy("mount /proc here: the library is looked for beside the command"));
  std::filesystem::path prefix = self.parent_path().parent_path();
  for (const char* place : kPlaces) {
    std::string path = (prefix / place / name).string();
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  Error error = Error::make(0, "%s is not in %s/lib", name, prefix.c_str());
  return std::unexpected(error.remedy("%s", remedy));
}

Result<std::string> find_library(const char* name) {
  Result<std::string> path = find_beside(name, "build or install it beside this command ('make', 'make install')");
  if (!path || path->find_first_of(" :") == std::string::npos) return path;
  Error error = Error::make(0, "%s: its path has a space or a colon, which LD_PRELOAD cannot hold", path->c_str());
  return std::unexpected(error.remedy("install Hinterland in another directory"));
}

}  // namespace

Result<std::string> find_preload_library() { return find_library("libhinterland-preload.so"); }
Result<std::string> find_signal_library() { return find_library("libhinterland-signal.so"); }

Result<std::string> find_pass_plugin() {
  return find_beside("libhinterland-pass.so", "build it beside this command ('make compiler')");
}

std::string preload_list(const std::string& libraries, const char* existing) {
  std::string list = libraries;
  std::string rest = existing != nullptr ? existing : "";
  for (std::size_t at = 0; at < rest.size();) {
    std::size_t end = std::min(rest.find_first_of(" :", at), rest.size());
    std::string entry = rest.substr(at, end - at);
    bool ours = (":" + libraries + ":").find(":" + entry + ":") != std::string::npos;
    if (!entry.empty() && !ours) list += ":" + entry;
    at = end + 1;
  }
  return list;
}

}  // namespace hinterland::cli
