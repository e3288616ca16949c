// Which of the loaded objects a path is, by its name as the loader gives it (dl_phdr_info, Dl_info).
#pragma once

#include <cstring>
#include <string_view>

namespace hinterland::object_names {

inline bool begins_with(const char* path, std::string_view name) {
  const char* slash = path != nullptr ? std::strrchr(path, '/') : nullptr;
  return slash != nullptr && std::strncmp(slash + 1, name.data(), name.size()) == 0;
}
inline bool is_libc(const char* path) { return begins_with(path, "libc.so"); }
// libhinterland-preload.so, libhinterland-signal.so, or libhinterland.so of a program that links it.
inline bool is_ours(const char* path) { return begins_with(path, "libhinterland"); }

}  // namespace hinterland::object_names
