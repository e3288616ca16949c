#include "server/operators.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "far/tcp/wire.hpp"

namespace hinterland {
namespace {

// Who may change what is there can make the server run anything.
Status check_owner(const std::string& path, const struct stat& status) {
  const bool ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  // Of a folder with the sticky bit (/tmp) nobody can take away or replace what belongs to others.
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  const bool shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky;
  if (ours && !shared) return {};
  Error error = ours ? Error::make(0, "operators: others than its owner may write %s", path.c_str())
                     : Error::make(0, "operators: %s belongs to user %u, neither to root nor to who serves",
                                   path.c_str(), status.st_uid);
  if (ours) return std::unexpected(error.remedy("chmod go-w %s", path.c_str()));
  return std::unexpected(error.remedy("chown %u %s, after a look at what it is", ::geteuid(), path.c_str()));
}

std::unexpected<Error> cannot_look_at(const std::string& path) {
  return std::unexpected(
      Error::make(errno, "operators: cannot look at %s", path.c_str()).remedy("give a folder to --operators"));
}

// The folder and those above it.
Status check_folders(const std::string& folder) {
  for (std::string path = folder;; path.resize(std::max<std::size_t>(path.rfind('/'), 1))) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return cannot_look_at(path);
    if (Status owned = check_owner(path, status); !owned) return owned;
    if (path == "/") return {};
  }
}

Result<std::vector<std::string>> libraries_in(const std::string& folder) {
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return cannot_look_at(folder);
  std::vector<std::string> paths;
  while (const dirent* entry = ::readdir(entries))
    if (std::string_view(entry->d_name).ends_with(".so")) paths.push_back(folder + "/" + entry->d_name);
  ::closedir(entries);
  std::ranges::sort(paths);
  if (paths.empty())
    return std::unexpected(
        Error::make(0, "operators: no file in %s ends in .so", folder.c_str())
            .remedy("put one there that is built as docs/offload.md says, or leave --operators out"));
  if (paths.size() > far::wire::kOperatorsMax)
    return std::unexpected(
        Error::make(0, "operators: more than %u files in %s end in .so", far::wire::kOperatorsMax, folder.c_str())
            .remedy("leave there what is used"));
  return paths;
}

Status check_file(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return cannot_look_at(path);
  if (!S_ISREG(status.st_mode))
    return std::unexpected(Error::make(0, "operators: %s is no ordinary file", path.c_str())
                               .remedy("put the library itself there, in the place of a link to it"));
  return check_owner(path, status);
}

Result<LoadedOperator> load(const std::string& path) {
  if (Status checked = check_file(path); !checked) return std::unexpected(checked.error());
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return std::unexpected(Error::make(0, "operators: %s cannot be loaded: %s", path.c_str(), ::dlerror())
                               .remedy("build it as docs/offload.md says: cc -shared -fPIC"));
  const auto* what = static_cast<const hl_operator*>(::dlsym(library, "hl_operator_plugin"));
  if (what == nullptr)
    return std::unexpected(Error::make(0, "operators: %s defines no hl_operator_plugin", path.c_str())
                               .remedy("define it with HL_OPERATOR_PLUGIN, as docs/offload.md says"));
  if (what->abi_version != HL_OPERATOR_ABI_VERSION)
    return std::unexpected(Error::make(0, "operators: %s was built for operator interface %u, this is %u",
                                       path.c_str(), what->abi_version, HL_OPERATOR_ABI_VERSION)
                               .remedy("build it again with this version's hinterland/operator.h"));
  const char* problem = "has no function";
  if (auto name = far::OperatorName::of(*what); !name)
    problem = name.error();
  else if (what->compute != nullptr)
    return LoadedOperator{what, path};
  return std::unexpected(Error::make(0, "operators: the operator of %s %s", path.c_str(), problem)
                             .remedy("hinterland/operator.h says what each field may be"));
}

}  // namespace

Result<std::vector<LoadedOperator>> load_operators(const std::string& folder) {
  std::unique_ptr<char, decltype(&std::free)> whole(::realpath(folder.c_str(), nullptr), &std::free);
  if (whole == nullptr) return cannot_look_at(folder);
  if (Status checked = check_folders(whole.get()); !checked) return std::unexpected(checked.error());
  auto paths = libraries_in(whole.get());
  if (!paths) return std::unexpected(paths.error());
  std::vector<LoadedOperator> all;
  for (const std::string& path : *paths) {
    Result<LoadedOperator> loaded = load(path);
    if (!loaded) return std::unexpected(loaded.error());
    for (const LoadedOperator& other : all)
      if (std::strcmp(other.what->name, loaded->what->name) == 0)
        return std::unexpected(Error::make(0, "operators: %s and %s are both named %s", other.path.c_str(),
                                           path.c_str(), loaded->what->name)
                                   .remedy("leave one of them there"));
    all.push_back(std::move(*loaded));
  }
  return all;
}

}  // namespace hinterland
