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

#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "base/stats.hpp"
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

// Behind the name in parentheses, which may hold anything: the state, and last of all the status it ended with.
bool first_thread_ended(int* status) {
  Text text = read_of(raw::call(SYS_getpid), "stat");
  const char* name_end = std::strrchr(text.bytes, ')');
  if (name_end == nullptr || name_end[1] != ' ' || name_end[2] != 'Z') return false;
  const char* last = std::strrchr(text.bytes, ' ');
  if (status != nullptr) *status = std::atoi(last + 1);
  return true;
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

int living_threads() {
  long folder =
      raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/task"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (raw::failed(folder)) return kUnknown;
  int count = first_thread_ended(nullptr) ? -1 : 0;
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
  int status = 0;
  if (stat_page()->pid != raw::call(SYS_getpid) || !first_thread_ended(&status)) return;
  if (living_threads() == 0) end_with(status);
}

void expect() {
  g_expected.store(true);
  StatPage* page = stat_page();
  page->request_sequence.fetch_add(1, std::memory_order_release);  // wakes the housekeeper, which looks at the other
  futex_wake(&page->request_sequence, 1, true);
}
bool is_expected() { return g_expected.load(); }

}  // namespace hinterland::program_end
