#include "cli/check/choice_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/plain_file.hpp"
#include "base/site_profile_text.hpp"
#include "cli/absolute_path.hpp"
#include "cli/output_file.hpp"

namespace hinterland::cli {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Nothing, nothing in it, or a profile: what we would write ourselves.
Status check_free(const std::string& path, bool force) {
  if (force || access(path.c_str(), F_OK) != 0) return {};
  Result<std::string> text = read_plain_file(path, "the file", site_profile::kBytesMax);
  if (text && (text->empty() || text->starts_with(site_profile::kFirstLine))) return {};
  Error error = Error::make(EEXIST, "%s is no profile of hints and is not written over", path.c_str());
  return std::unexpected(error.remedy("name another file with --output, or use --force"));
}

}  // namespace

Result<ChoiceFile> ChoiceFile::find(const std::string& output, const std::string& program, bool force) {
  std::string path = absolute_path(output);
  if (output.empty()) {
    if (program.empty()) {
      Error error = Error::make(0, "libraries alone have hints, and the choice would lie beside no program");
      return std::unexpected(
          error.remedy("name a file, --output FILE, and later use it: hinterland run --sites FILE"));
    }
    path = site_profile::path_beside(program);
    if (access(folder_of(path).c_str(), W_OK) != 0) path = site_profile::path_in_cache(program);
    if (path.empty()) {
      Error error = Error::make(0, "%s may not be written, and neither HOME nor XDG_CACHE_HOME is set",
                                folder_of(program).c_str());
      return std::unexpected(
          error.remedy("name a file, --output FILE, and later use it: hinterland run --sites FILE"));
    }
  }
  if (Status free = check_free(path, force); !free) return std::unexpected(free.error());
  return ChoiceFile(path, output.empty());
}

Status ChoiceFile::write(const std::string& text) const {
  const std::string made = path_ + "." + std::to_string(getpid());
  std::error_code problem;  // the write below says it
  std::filesystem::create_directories(folder_of(path_), problem);
  if (Status written = write_file(made, text, true); !written) {
    unlink(made.c_str());
    return written;
  }
  if (std::rename(made.c_str(), path_.c_str()) == 0) return {};
  Error error = Error::make(errno, "%s cannot be written", path_.c_str());
  unlink(made.c_str());
  return std::unexpected(error);
}

}  // namespace hinterland::cli
