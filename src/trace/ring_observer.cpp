#include "trace/ring_observer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "base/stats.hpp"
#include "base/stats_folder.hpp"
#include "paging/bus_signal.hpp"
#include "paging/pager.hpp"
#include "trace/allocation_log.hpp"
#include "trace/callers.hpp"
#include "trace/ring.hpp"

// System calls go through syscall(): in the preloaded library mmap and close are our own interposers, which must not
// see the ring (it is no memory of the program).

namespace hinterland::trace {
namespace {

constexpr int kRingsMax = 10000;  // of one process id: programs that it ran through by exec

// What a process that is traced has: at most one ring, made when the first record wants it.
class RingObserver final : public FaultObserver {
 public:
  char directory[256] = {};
  std::uint32_t read_ahead_pages = 0;
  std::uint64_t local_bytes = 0;
  std::uint64_t instruction_every = 0;
  bool only_notes_hints = false;

  void fault(std::uintptr_t address, std::uint32_t thread_id, bool write, FaultKind kind,
             bool expects_write) override;
  void served(std::uintptr_t address, std::uint32_t thread_id) override;
  void hint(const HintSeen& seen) override;
  void hint_found_all(const HintSeen& seen) override;
  bool hints_are_only_noted() const override { return only_notes_hints; }
  // This process's ring, if it has one that is still read.
  RingFile* ring();
  bool is_over() override {
    return process_.load(std::memory_order_acquire) == stat_page()->pid && ring() == nullptr;
  }
  // A recorder waits for what this process has to tell.
  bool is_wanted();
  // The next fault makes a ring.
  void begin_again();
  // A queue of the ring is full.
  void note_full(RingFile* ring);

 private:
  void open();
  void put(RingFile* to, HintEvent event, bool with_callers);
  void give_up(RingFile* ring);
  int create_file() const;
  void describe(RingFile& ring) const;
  static std::uint64_t instruction_of(std::uint32_t thread_id);

  static constexpr std::int32_t kNone = -1;
  std::atomic<std::int32_t> process_{kNone};  // that ring_ belongs to, or the lack of one
  std::atomic<std::int32_t> opening_{kNone};  // process of which a thread makes the ring, or has
  std::atomic<RingFile*> ring_{nullptr};
};

// By chance, independent of what the program does: the time's last digits, stirred.
bool one_in(std::uint64_t every) { return every != 0 && (now_ns() * 0x9e3779b97f4a7c15 >> 32) % every == 0; }

RingFile* RingObserver::ring() {
  // acquire pairs with the release in open(). Another process: a forked child, and the ring is its parent's.
  if (process_.load(std::memory_order_acquire) != stat_page()->pid) return nullptr;
  RingFile* ring = ring_.load(std::memory_order_acquire);
  if (ring == nullptr || ring->header.closed.load(std::memory_order_relaxed) == 0) [[likely]]
    return ring;
  give_up(ring);
  return nullptr;
}

void RingObserver::fault(std::uintptr_t address, std::uint32_t thread_id, bool write, FaultKind kind,
                         bool expects_write) {
  if (process_.load(std::memory_order_relaxed) != stat_page()->pid) open();  // the first fault of this process
  RingFile* to = ring();
  if (to == nullptr) return;
  std::uint64_t instruction = one_in(instruction_every) ? instruction_of(thread_id) : 0;
  if (!to->faults.put({now_ns(), address, instruction, thread_id, kind, write, expects_write, 0})) note_full(to);
}

void RingObserver::served(std::uintptr_t address, std::uint32_t thread_id) {
  RingFile* to = ring();
  if (to != nullptr && !to->faults.put({now_ns(), address, 0, thread_id, kServed, 0, 0, 0})) note_full(to);
}

// A handler's thread, or that of a forked child.
void RingObserver::open() {
  std::int32_t mine = stat_page()->pid, before = opening_.load();
  if (before == mine || !opening_.compare_exchange_strong(before, mine)) {
    while (process_.load() != mine) syscall(SYS_sched_yield);  // another handler is at it: some milliseconds
    return;
  }
  RingFile* made = nullptr;  // a parent's stays mapped: it is the parent's to write
  int file = create_file();
  // The space is taken now: a write to a page that memory has no room for would be a SIGBUS later.
  if (file >= 0 && !fits_file_limit(kRingBytes))
    errno = EFBIG;
  else if (file >= 0 && syscall(SYS_fallocate, file, 0, 0L, static_cast<long>(kRingBytes)) == 0) {
    auto at = raw::checked(SYS_mmap, nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
    if (at != -1) made = reinterpret_cast<RingFile*>(at);
  }
  if (made == nullptr && errno != ENOENT)  // without the directory the recorder has ended, and nobody waits for more
    log::warning("process %d is not traced: no room for its records in %s (%s)", mine, directory,
                 strerrordesc_np(errno));
  if (file >= 0) raw::checked(SYS_close, file);
  if (made != nullptr) describe(*made);
  ring_.store(made, std::memory_order_release);
  process_.store(mine, std::memory_order_release);
  if (made != nullptr) allocation_log::tell_all(*made);  // behind: what is made meanwhile is told twice, not never
}

// Nobody reads any more. A thread may be about to write there: it writes into fresh memory of our own, and nobody
// sees it. The addresses are not used again.
void RingObserver::give_up(RingFile* ring) {
  if (!ring_.compare_exchange_strong(ring, nullptr)) return;
  raw::checked(SYS_mmap, ring, kRingBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
}

// A recorder that ended has taken its directory away, and one that was killed has left that to the next.
bool RingObserver::is_wanted() {
  return directory[0] != '\0' && !is_over() && syscall(SYS_access, directory, F_OK) == 0;
}

void RingObserver::begin_again() {
  if (RingFile* old = ring(); old != nullptr) give_up(old);
  opening_.store(kNone);
  process_.store(kNone, std::memory_order_release);
}

// The recorder may be slow; or it was killed, and said nothing.
void RingObserver::note_full(RingFile* ring) {
  if (now_ns() - ring->header.looked_ns.load(std::memory_order_relaxed) > kRecorderGoneNs) give_up(ring);
}

int RingObserver::create_file() const {
  char name[sizeof directory + 64], process[32];
  statistics_file_name(process, sizeof process, stat_page()->pid);  // a container's processes have the same numbers
  for (int number = 0; number < kRingsMax; ++number) {
    std::snprintf(name, sizeof name, "%s/%s.%d", directory, process, number);
    long file = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return static_cast<int>(file);
  }
  return -1;
}

void RingObserver::describe(RingFile& ring) const {
  const Pager* pager = Pager::current();
  RingHeader& header = ring.header;
  header.process_id = stat_page()->pid;
  header.read_ahead_pages = read_ahead_pages;
  header.faults_by_signal = bus_signal::installed() ? 1 : 0;
  header.opened_ns = now_ns();
  header.looked_ns.store(header.opened_ns, std::memory_order_relaxed);
  header.window_base = pager != nullptr ? pager->window_base() : 0;
  header.window_bytes = pager != nullptr ? pager->window_bytes() : 0;
  header.local_bytes = pager != nullptr ? pager->budget_bytes() : local_bytes;
  std::memcpy(header.program, stat_page()->program, sizeof header.program);
  std::memcpy(header.far_url, stat_page()->far_url, sizeof header.far_url);
  std::memcpy(header.policy, stat_page()->policy, sizeof header.policy);
  header.magic.store(RingHeader::kMagic, std::memory_order_release);  // pairs with the recorder's look
}

// Of a thread that sleeps in a fault: the last word of /proc/self/task/ID/syscall. Works without any permission, and
// costs about 2 us, unlike the kernel's sampling, which also has the stack.
std::uint64_t RingObserver::instruction_of(std::uint32_t thread_id) {
  if (std::uintptr_t own = bus_signal::faulting_instruction(); own != 0) return own;
  char text[256];
  std::snprintf(text, sizeof text, "/proc/self/task/%u/syscall", thread_id);
  long file = syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  raw::checked(SYS_close, file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* last = std::strrchr(text, ' ');
  return last != nullptr ? std::strtoull(last + 1, nullptr, 16) : 0;
}

HintEvent event_of(const HintSeen& seen) {
  HintEvent event{};
  event.time_ns = now_ns();
  event.address = seen.address;
  event.read_ahead = seen.read_ahead;
  event.thread_id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  event.pages = seen.pages;
  event.far = seen.far;
  event.far_ahead = seen.far_ahead;
  event.parked = static_cast<std::uint16_t>(std::min<std::uint32_t>(seen.parked, UINT16_MAX));
  event.write_protect = static_cast<std::uint16_t>(std::min<std::uint32_t>(seen.write_protect, UINT16_MAX));
  event.write = seen.write;
  event.sequential = seen.sequential;
  event.priority = seen.priority;
  return event;
}

// Of a process that has not faulted yet no hints are recorded: nor has it a trace.
void RingObserver::hint(const HintSeen& seen) {
  if (RingFile* to = ring(); to != nullptr) put(to, event_of(seen), only_notes_hints || one_in(kHintCallersEvery));
}

void RingObserver::hint_found_all(const HintSeen& seen) {
  RingFile* to = ring();
  if (to == nullptr || !one_in(kHintCallersEvery)) return;
  HintEvent event = event_of(seen);
  event.found_all = 1;
  put(to, event, true);
}

void RingObserver::put(RingFile* to, HintEvent event, bool with_callers) {
  if (with_callers && !to->hints.is_full()) {
    InsideRuntime inside;
    find_callers(event.callers, HintEvent::kFrames);
  }
  if (!to->hints.put(event)) note_full(to);
}

constinit RingObserver g_observer;

}  // namespace

RingFile* current_ring() { return g_observer.ring(); }
bool recording_is_over() { return g_observer.is_over(); }
void put(RingFile& ring, const AllocationEvent& event) {
  if (!ring.allocations.put(event)) g_observer.note_full(&ring);
}

int observe_on_request(const char* directory, std::uint64_t instruction_every, FaultObserver** observer) {
  if (g_observer.is_wanted()) return -EBUSY;
  std::snprintf(g_observer.directory, sizeof g_observer.directory, "%s", directory);
  g_observer.instruction_every = instruction_every;
  g_observer.only_notes_hints = false;
  g_observer.begin_again();
  *observer = &g_observer;
  return 0;
}

FaultObserver* observer_from_environment(std::uint32_t read_ahead_pages, std::uint64_t local_bytes) {
  g_observer.read_ahead_pages = read_ahead_pages;
  g_observer.local_bytes = local_bytes;
  const char* directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || directory[0] == '\0') return nullptr;
  std::snprintf(g_observer.directory, sizeof g_observer.directory, "%s", directory);
  const char* every = std::getenv(kInstructionVariable);
  g_observer.instruction_every = every != nullptr ? std::strtoull(every, nullptr, 10) : 0;
  g_observer.only_notes_hints = std::getenv(kNoteHintsVariable) != nullptr;
  return &g_observer;
}

}  // namespace hinterland::trace
