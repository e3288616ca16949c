// Where the statistics pages are (stats.hpp): a folder of the user's own, below one that others may write.
//
// Another user may make it first, with whatever he likes in it. So it is opened without following a link, its owner
// and mode are those of the open descriptor, and every name in it is looked up from there. Nothing here allocates.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hinterland {

inline constexpr std::size_t kStatisticsPathMax = 256;

// HINTERLAND_STAT_DIR if set, else default_statistics_directory(). `path` has kStatisticsPathMax bytes.
void statistics_directory(char* path, std::size_t size);

// XDG_RUNTIME_DIR/hinterland where that is this user's alone, else /dev/shm/hinterland-UID.
void default_statistics_directory(char* path, std::size_t size);

// A descriptor of the folder, or -errno: -EPERM when it is another's, or others may write it; -ELOOP or -ENOTDIR for
// a link and what is no folder. Root may look at the folders of others, whose owner may then do anything with it, but
// nobody else (`of_anybody`).
int open_statistics_folder(int at, const char* path, bool of_anybody);
// The same, made before if there is none.
int make_statistics_folder(const char* path);

// "4711-4026531836": process and PID namespace, since containers that share the folder use the same numbers. At least
// 32 bytes.
void statistics_file_name(char* name, std::size_t size, pid_t process);

// "pid:[4026531836]" of a link below /proc gives 4026531836; 0 where there is none.
std::uint64_t namespace_number(const char* link);

}  // namespace hinterland
