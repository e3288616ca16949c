// A file below /proc that the runtime reads again and again. It stays open under a high number: a file that is opened
// for each reading takes, for that moment, the lowest free number, which the program may be about to get, or close.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"

namespace hinterland {

class ProcFile {
 public:
  ProcFile() = default;
  ~ProcFile();
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  // Opens it for reading; what was open before is closed. `path` is resolved by the calling thread, and again by
  // whoever misses the file. 0 or -errno. To be called while the program opens and closes nothing: at its start, or
  // in a forked child; elsewhere the number is low for a moment.
  int open(const char* path);
  // As pread(2): what was read, or -errno. Any thread. Never reads another file that the program has put in its
  // place.
  std::int64_t read_at(void* target, std::size_t length, std::uint64_t offset);
  // ioctl(2), likewise: what it returned, or -errno.
  int control(unsigned long request, void* argument);
  // Below zero: why there is none.
  int descriptor() const { return now_.load(std::memory_order_relaxed); }

  // In a forked child, before it opens its own: they are the parent's.
  static void close_all_after_fork();

 private:
  static constexpr std::size_t kMax = 16;

  template <typename Call>
  std::int64_t with_file(Call call);
  bool is(int descriptor) const;
  int open_locked();
  void close_locked();

  static Mutex s_mutex;  // guards the list, and who opens
  static std::array<std::atomic<ProcFile*>, kMax> s_files;

  std::array<char, 48> path_{};
  // relaxed, all three: who finds an old number, or the marks of another opening, tries again under the mutex
  std::atomic<int> now_{-EBADF};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> number_{0};
};

}  // namespace hinterland
