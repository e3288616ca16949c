#include "kernel/kept_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "kernel/high_descriptor.hpp"

namespace hinterland {
namespace {

// Guards the list, the keeper and the numbers. Nobody waits for a page with it.
Mutex g_mutex;
std::array<KeptFile*, KeptFile::kMax> g_files = {};
const DescriptorKeeper* g_keeper = nullptr;

}  // namespace

std::atomic<unsigned> KeptFile::s_count{0};

KeptFile::KeptFile(int descriptor) : now_(descriptor) {
  struct stat status{};
  if (raw::call(SYS_fstat, descriptor, raw::word_of(&status)) == 0) {
    device_ = status.st_dev;
    number_ = status.st_ino;
  }
  s_count.fetch_add(1);
  LockGuard guard(g_mutex);
  if (auto free = std::ranges::find(g_files, nullptr); free != g_files.end()) *free = this;
}

KeptFile::~KeptFile() {
  LockGuard guard(g_mutex);
  std::ranges::replace(g_files, this, static_cast<KeptFile*>(nullptr));
  s_count.fetch_sub(1);
  close_high(descriptor());
}

bool KeptFile::is_one(dev_t device, ino_t number) {
  LockGuard guard(g_mutex);
  return std::ranges::any_of(g_files, [device, number](const KeptFile* file) {
    return file != nullptr && file->device_ == device && file->number_ == number;
  });
}

// Raw: fstat() is the preloaded library's, to which the runtime's descriptors are not open.
bool KeptFile::is_here() const {
  struct stat status{};
  return raw::call(SYS_fstat, descriptor(), raw::word_of(&status)) == 0 && status.st_dev == device_ &&
         status.st_ino == number_;
}

bool KeptFile::take_back_locked() {
  if (is_here()) return true;
  if (g_keeper == nullptr || kept_ < 0) return false;
  int fresh = g_keeper->take_back(kept_, descriptor());
  if (fresh >= 0) now_.store(fresh, std::memory_order_relaxed);
  return fresh >= 0;
}

bool KeptFile::take_back(int lost) {
  int saved_errno = errno;
  LockGuard guard(g_mutex);
  bool open = descriptor() != lost || take_back_locked();
  errno = saved_errno;
  return open;
}

std::size_t KeptFile::begin_keeping(const DescriptorKeeper& keeper, std::span<int> descriptors) {
  LockGuard guard(g_mutex);
  g_keeper = &keeper;
  std::size_t count = 0;
  for (KeptFile* file : g_files)
    if (file != nullptr && count < descriptors.size()) descriptors[count++] = file->kept_ = file->descriptor();
  return count;
}

void KeptFile::take_back_all() {
  LockGuard guard(g_mutex);
  for (KeptFile* file : g_files)
    if (file != nullptr) file->take_back_locked();
}

void KeptFile::after_fork_in_child() {
  g_mutex.reset_after_fork();
  g_keeper = nullptr;  // until it is there again
}

}  // namespace hinterland
