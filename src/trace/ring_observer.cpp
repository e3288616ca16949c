#include "trace/ring_observer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/stats.hpp"
#include "paging/pager.hpp"
#include "trace/ring.hpp"

// System calls go through syscall(): in the preloaded library mmap and close are our own interposers, which must not
// see the ring (it is no memory of the program).

namespace hinterland::trace {
namespace {

constexpr int kRingsMax = 10000;  // of one process id: programs that it ran through by exec

class RingObserver final : public FaultObserver {
 public:
  char directory[256] = {};
  std::uint32_t read_ahead_pages = 0;
  std::uint64_t local_bytes = 0;
  std::uint64_t instruction_every = 0;

  void fault(std::uintptr_t address, std::uint32_t thread_id, bool write, FaultKind kind) override {
    if (process_ != stat_page()->pid) open();  // the first fault of this process, or of this forked child
    if (ring_ == nullptr) return;
    std::uint64_t at = ring_->written.load(std::memory_order_relaxed);  // ours alone
    if (at - ring_->taken.load(std::memory_order_acquire) >=
        RingHeader::kRecords) {  // pairs with the recorder's release
      ring_->lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    bool sampled = instruction_every != 0 && next_random() % instruction_every == 0;
    records_[at % RingHeader::kRecords] = {
        now_ns(), address, sampled ? instruction_of(thread_id) : 0, thread_id, kind, write, 0};
    ring_->written.store(at + 1, std::memory_order_release);  // pairs with the recorder's look
  }

 private:
  void open();
  int create_file() const;
  void describe() const;
  static std::uint64_t instruction_of(std::uint32_t thread_id);
  std::uint64_t next_random() {  // xorshift64*: independent of what the program does
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1d >> 32;
  }

  std::int32_t process_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
  RingHeader* ring_ = nullptr;
  RingRecord* records_ = nullptr;
};

void RingObserver::open() {
  process_ = stat_page()->pid;
  random_ ^= now_ns() | 1;
  ring_ = nullptr;  // a parent's stays mapped: it is the parent's to write
  int file = create_file();
  // The space is taken now: a write to a page that memory has no room for would be a SIGBUS later.
  if (file >= 0 && syscall(SYS_fallocate, file, 0, 0L, static_cast<long>(kRingBytes)) == 0) {
    auto at = syscall(SYS_mmap, nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
    if (at != -1) ring_ = reinterpret_cast<RingHeader*>(at);
  }
  if (ring_ == nullptr && errno != ENOENT)  // without the directory the recorder has ended, and nobody waits for more
    log::warning("process %d is not traced: no room for its records in %s (%s)", process_, directory,
                 strerrordesc_np(errno));
  if (file >= 0) syscall(SYS_close, file);
  if (ring_ == nullptr) return;
  records_ = reinterpret_cast<RingRecord*>(reinterpret_cast<char*>(ring_) + kRingRecordsAt);
  describe();
}

int RingObserver::create_file() const {
  char name[sizeof directory + 32];
  for (int number = 0; number < kRingsMax; ++number) {
    std::snprintf(name, sizeof name, "%s/%d.%d", directory, process_, number);
    long file = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return static_cast<int>(file);
  }
  return -1;
}

void RingObserver::describe() const {
  const Pager* pager = Pager::current();
  ring_->process_id = process_;
  ring_->read_ahead_pages = read_ahead_pages;
  ring_->opened_ns = now_ns();
  ring_->window_base = pager != nullptr ? pager->window_base() : 0;
  ring_->window_bytes = pager != nullptr ? pager->window_bytes() : 0;
  ring_->local_bytes = pager != nullptr ? pager->budget_bytes() : local_bytes;
  std::memcpy(ring_->program, stat_page()->program, sizeof ring_->program);
  std::memcpy(ring_->far_url, stat_page()->far_url, sizeof ring_->far_url);
  std::memcpy(ring_->policy, stat_page()->policy, sizeof ring_->policy);
  ring_->magic.store(RingHeader::kMagic, std::memory_order_release);  // pairs with the recorder's look
}

// Of a thread that sleeps in a fault: the last word of /proc/self/task/ID/syscall. Works without any permission, and
// costs about 2 us, unlike the kernel's sampling, which also has the stack.
std::uint64_t RingObserver::instruction_of(std::uint32_t thread_id) {
  char text[256];
  std::snprintf(text, sizeof text, "/proc/self/task/%u/syscall", thread_id);
  long file = syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* last = std::strrchr(text, ' ');
  return last != nullptr ? std::strtoull(last + 1, nullptr, 16) : 0;
}

constinit RingObserver g_observer;

}  // namespace

FaultObserver* observer_from_environment(std::uint32_t read_ahead_pages, std::uint64_t local_bytes) {
  const char* directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || directory[0] == '\0') return nullptr;
  std::snprintf(g_observer.directory, sizeof g_observer.directory, "%s", directory);
  g_observer.read_ahead_pages = read_ahead_pages;
  g_observer.local_bytes = local_bytes;
  const char* every = std::getenv(kInstructionVariable);
  g_observer.instruction_every = every != nullptr ? std::strtoull(every, nullptr, 10) : 0;
  return &g_observer;
}

}  // namespace hinterland::trace
