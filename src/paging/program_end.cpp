#include "paging/program_end.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "base/stats.hpp"
#include "kernel/proc_file.hpp"
#include "paging/pager.hpp"

namespace hinterland::program_end {
namespace {

constexpr int kUnknown = -1;
std::atomic<bool> g_expected{false};

struct DirectoryEntry {
  std::uint64_t number;
  std::int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[1];
};

struct Text {
  char bytes[1024];
};

// A small file of a thread of this process, "" if there is none.
Text read_of(long thread, const char* file) {
  Text text;
  text.bytes[0] = '\0';
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%ld/%s", thread, file);
  long opened = raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (raw::failed(opened)) return text;
  long used = raw::call(SYS_read, opened, reinterpret_cast<long>(text.bytes), sizeof text.bytes - 1);
  raw::call(SYS_close, opened);
  text.bytes[raw::failed(used) ? 0 : used] = '\0';
  return text;
}

ProcFile& first_threads_state() {
  // Never destroyed: looked at until the process is gone.
  alignas(ProcFile) static char storage[sizeof(ProcFile)];
  static ProcFile* file = new (storage) ProcFile;
  return *file;
}

struct FirstThread {
  bool ended = false;
  int status = 0;   // with which it ended
  int threads = 0;  // of the process, with all that have not been waited for
};

// Behind the name in parentheses, which may hold anything: the state, as 18th the number of threads, and last of all
// the status.
FirstThread first_thread() {
  FirstThread first;
  Text text;
  const std::int64_t used = first_threads_state().read_at(text.bytes, sizeof text.bytes - 1, 0);
  text.bytes[used > 0 ? used : 0] = '\0';
  const char* at = std::strrchr(text.bytes, ')');
  if (at == nullptr || at[1] != ' ' || at[2] != 'Z') return first;
  first.ended = true;
  first.status = std::atoi(std::strrchr(text.bytes, ' ') + 1);
  for (int field = 2; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
  if (at != nullptr) first.threads = std::atoi(at + 1);
  return first;
}

int noted_threads() {
  int count = 0;
  for (const auto& known : stat_page()->inside.runtime_threads) count += known.load() != 0 ? 1 : 0;
  return count;
}

// By its number, and by its name as well: the number of one that ended may be another's by now.
bool is_runtime_thread(long thread) {
  bool noted = false;
  for (const auto& known : stat_page()->inside.runtime_threads) noted = noted || known.load() == thread;
  return noted && std::strncmp(read_of(thread, "comm").bytes, "hl-", 3) == 0;
}

[[noreturn]] void end_with(int status) {
  Pager::current()->leave_device();
  close_stat_page();
  if (int number = status & 0x7f;
      number != 0) {  // a signal ended the thread (seccomp), and would have ended the process
    struct sigaction plain{};
    plain.sa_handler = SIG_DFL;
    sigaction(number, &plain, nullptr);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), number);
  }
  for (;;) raw::call(SYS_exit_group, status >> 8 & 0xff);
}

}  // namespace

void watch_this_process() {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%ld/stat", raw::call(SYS_getpid));
  first_threads_state().open(path);
}

int living_threads() {
  long folder =
      raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/task"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (raw::failed(folder)) return kUnknown;
  int count = first_thread().ended ? -1 : 0;
  alignas(DirectoryEntry) char entries[2048];
  long used;
  while ((used = raw::call(SYS_getdents64, folder, reinterpret_cast<long>(entries), sizeof entries)) > 0)
    for (long at = 0; at < used;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->bytes;
      if (entry->name[0] >= '0' && entry->name[0] <= '9' && !is_runtime_thread(std::atol(entry->name))) ++count;
    }
  raw::call(SYS_close, folder);
  return used == 0 ? count : kUnknown;
}

void end_if_over() {
  if (stat_page()->pid != raw::call(SYS_getpid)) return;
  const FirstThread first = first_thread();
  if (!first.ended || first.threads > noted_threads() + 1) return;  // more than the first one and ours: they live
  if (living_threads() == 0) end_with(first.status);
}

void expect() {
  g_expected.store(true);
  StatPage* page = stat_page();
  page->request_sequence.fetch_add(1, std::memory_order_release);  // wakes the housekeeper, which looks at the other
  futex_wake(&page->request_sequence, 1, true);
}
bool is_expected() { return g_expected.load(); }

}  // namespace hinterland::program_end
