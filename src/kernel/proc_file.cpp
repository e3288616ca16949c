#include "kernel/proc_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/raw_call.hpp"
#include "kernel/high_descriptor.hpp"

namespace hinterland {

Mutex ProcFile::s_mutex;
std::array<std::atomic<ProcFile*>, ProcFile::kMax> ProcFile::s_files{};

ProcFile::~ProcFile() {
  LockGuard guard(s_mutex);
  close_locked();
  for (auto& file : s_files)
    if (file.load(std::memory_order_relaxed) == this) file.store(nullptr, std::memory_order_relaxed);
}

int ProcFile::open(const char* path) {
  LockGuard guard(s_mutex);
  std::snprintf(path_.data(), path_.size(), "%s", path);
  close_locked();
  return open_locked();
}

// Beyond the last place of the list it works, and stays open in a forked child.
int ProcFile::open_locked() {
  const int opened = open_high(
      [this] { return static_cast<int>(raw::checked(SYS_openat, AT_FDCWD, path_.data(), O_RDONLY | O_CLOEXEC)); });
  struct stat status{};
  if (opened >= 0 && raw::call(SYS_fstat, opened, raw::word_of(&status)) == 0) {
    device_.store(status.st_dev, std::memory_order_relaxed);
    number_.store(status.st_ino, std::memory_order_relaxed);
  }
  now_.store(opened, std::memory_order_relaxed);
  for (auto& file : s_files)
    if (file.load(std::memory_order_relaxed) == this) return std::min(opened, 0);
  for (auto& file : s_files) {
    ProcFile* free = nullptr;
    if (file.compare_exchange_strong(free, this, std::memory_order_relaxed)) break;
  }
  return std::min(opened, 0);
}

// What the program has put in its place is left alone.
void ProcFile::close_locked() {
  const int old = now_.exchange(-EBADF, std::memory_order_relaxed);
  if (is(old))
    close_high(old);
  else
    forget_runtime_descriptor(old);
}

// Raw: fstat() is the preloaded library's, to which the runtime's descriptors are not open.
bool ProcFile::is(int descriptor) const {
  struct stat status{};
  return descriptor >= 0 && raw::call(SYS_fstat, descriptor, raw::word_of(&status)) == 0 &&
         status.st_dev == device_.load(std::memory_order_relaxed) &&
         status.st_ino == number_.load(std::memory_order_relaxed);
}

// A number that is this file's after the call was so during the call: what the program closes does not come back.
template <typename Call>
std::int64_t ProcFile::with_file(Call call) {
  constexpr int kTries = 100;  // the program would have to close it each time
  for (int tries = 0; tries < kTries; ++tries) {
    const int descriptor = this->descriptor();
    if (descriptor < 0 && descriptor != -EBADF) return descriptor;  // there was none from the beginning
    const long done = call(descriptor);
    if (is(descriptor)) return done;
    LockGuard guard(s_mutex);
    if (this->descriptor() != descriptor) continue;  // another thread has opened it
    if (path_[0] == '\0') return -EBADF;
    close_locked();
    if (const int error = open_locked(); error != 0) {
      now_.store(-EBADF, std::memory_order_relaxed);  // there may be a number for it later
      return error;
    }
  }
  return -EBADF;
}

std::int64_t ProcFile::read_at(void* target, std::size_t length, std::uint64_t offset) {
  return with_file([=](int descriptor) {
    return raw::call(SYS_pread64, descriptor, raw::word_of(target), static_cast<long>(length),
                     static_cast<long>(offset));
  });
}

int ProcFile::control(unsigned long request, void* argument) {
  return static_cast<int>(with_file([=](int descriptor) {
    return raw::call(SYS_ioctl, descriptor, static_cast<long>(request), raw::word_of(argument));
  }));
}

// None stays on the list until it is opened again: one may have been on the stack of a thread that is not there.
void ProcFile::close_all_after_fork() {
  s_mutex.reset_after_fork();
  for (auto& file : s_files)
    if (ProcFile* one = file.exchange(nullptr, std::memory_order_relaxed); one != nullptr) one->close_locked();
}

}  // namespace hinterland
