#include "base/stats.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "base/raw_call.hpp"
#include "base/stats_folder.hpp"
#include "base/units.hpp"

// System calls are raw: in the preloaded library mmap, munmap, close and syscall() are our own interposers, which
// must not see the statistics page (it is no memory of the program, and they may count on it), nor refuse a
// descriptor here because its number was one of the runtime's that the program has closed unseen.

namespace hinterland {

const std::array<StatName, static_cast<std::size_t>(Counter::count)> kCounterNames{{
#define X(name, help) {#name, help},
    HL_COUNTERS(X)
#undef X
}};
const std::array<StatName, static_cast<std::size_t>(Gauge::count)> kGaugeNames{{
#define X(name, help) {#name, help},
    HL_GAUGES(X)
#undef X
}};

namespace {

constexpr std::size_t kPageBytes = bytes_of_pages(pages_of_bytes(sizeof(StatPage)));
constexpr int kEarlierProgramsMax = 1000;  // programs one process ran through by exec, kept for a report

// Constant-initialised: the preloaded library counts before any constructor has run.
constinit StatPage g_private_page{};
constinit std::atomic<StatPage*> g_page{&g_private_page};
pid_t g_owner = 0;      // the process whose figures *g_page holds; 0 before the first open_stat_page()
bool g_shared = false;  // whether a file holds *g_page
bool g_keep = false;
// From the environment of the process that opened first. A forked child uses them again: its own environment may lie
// in far memory, which it cannot touch yet.
char g_directory[kStatisticsPathMax];

int error_or(long result) { return result < 0 ? -errno : static_cast<int>(result); }

// A file of this name is left from a program that this process ran before exec, or from a dead process with the
// same PID. It is never written again (its readers may have it mapped): it makes room.
int make_room(int directory, const char* name) {
  for (int earlier = 1; g_keep && earlier <= kEarlierProgramsMax; ++earlier) {
    char kept[64];
    std::snprintf(kept, sizeof kept, "%s.%d", name, earlier);
    if (raw::checked(SYS_renameat2, directory, name, directory, kept, 1 /* RENAME_NOREPLACE */) == 0) return 0;
    if (errno == ENOENT) return 0;
    if (errno != EEXIST) break;
  }
  if (raw::checked(SYS_unlinkat, directory, name, 0) == 0 || errno == ENOENT) return 0;
  return -errno;
}

// Reserves the file's blocks, so that a full file system shows here and not as SIGBUS in the middle of a fault.
int reserve(int file) {
  if (!fits_file_limit(kPageBytes)) return -EFBIG;
  int result = error_or(raw::checked(SYS_ftruncate, file, kPageBytes));
  if (result == 0) result = error_or(raw::checked(SYS_fallocate, file, 0, 0L, kPageBytes));
  if (result != -EOPNOTSUPP) return result;
  static constexpr char zeros[kPageSize] = {};
  for (std::size_t at = 0; at < kPageBytes; at += sizeof zeros) {
    long written = raw::checked(SYS_pwrite64, file, zeros, sizeof zeros, at);
    if (written != static_cast<long>(sizeof zeros)) return written < 0 ? -errno : -ENOSPC;
  }
  return 0;
}

int map_file(int directory, const char* name, StatPage** out) {
  int result = make_room(directory, name);
  if (result < 0) return result;
  int file =
      error_or(raw::checked(SYS_openat, directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file < 0) return file;
  result = reserve(file);
  if (result == 0) {
    long address = raw::checked(SYS_mmap, nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
    if (address == -1)
      result = -errno;
    else
      *out = reinterpret_cast<StatPage*>(address);
  }
  if (result < 0) raw::checked(SYS_unlinkat, directory, name, 0);
  raw::checked(SYS_close, file);  // the program must not meet a descriptor that it did not open
  return result;
}

int create_shared_page(StatPage** out) {
  int directory = make_statistics_folder(g_directory);
  if (directory < 0) return directory;
  char name[32];
  statistics_file_name(name, sizeof name, getpid());
  int result = map_file(directory, name, out);
  g_shared = result == 0;
  raw::checked(SYS_close, directory);
  return result;
}

template <typename Array>
void copy_relaxed(const Array& from, Array& to) {
  // relaxed: nobody else runs yet (contract of open_stat_page)
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i].store(from[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

template <typename Value>
void copy_relaxed_one(const std::atomic<Value>& from, std::atomic<Value>& to) {
  to.store(from.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

template <typename Visit>
void for_each_counter(Visit&& visit) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::count); ++i) visit(static_cast<Counter>(i));
}

void copy_text(char* to, std::size_t size, const char* from) { std::snprintf(to, size, "%s", from); }

// What `page` takes over from `old`: state (gauges, device) always; what was counted only if it was counted by
// this process, and not by the parent before a fork.
void carry_over(const StatPage& old, StatPage& page, bool same_process) {
  copy_relaxed(old.gauges, page.gauges);
  copy_text(page.far_url, sizeof page.far_url, old.far_url);
  page.faults_by_signal = old.faults_by_signal;
  copy_text(page.policy, sizeof page.policy, old.policy);
  copy_relaxed_one(old.inside.window_base, page.inside.window_base);
  copy_relaxed_one(old.inside.window_bytes, page.inside.window_bytes);
  copy_relaxed_one(old.inside.places_base, page.inside.places_base);
  copy_relaxed_one(old.inside.places_bytes, page.inside.places_bytes);
  copy_relaxed_one(old.inside.outside_chunks, page.inside.outside_chunks);
  copy_relaxed_one(old.inside.outside_bits, page.inside.outside_bits);
  copy_relaxed_one(old.inside.page_words, page.inside.page_words);
  copy_relaxed_one(old.inside.page_directory, page.inside.page_directory);
  copy_relaxed_one(old.inside.page_chunks, page.inside.page_chunks);
  copy_relaxed_one(old.inside.page_marks, page.inside.page_marks);
  copy_relaxed_one(old.inside.inside_offset, page.inside.inside_offset);
  if (!same_process) return;
  copy_relaxed(old.inside.runtime_threads, page.inside.runtime_threads);
  for_each_counter([&](Counter counter) { page.counters.set(counter, old.counters[counter]); });
  page.fault_latency.copy_from(old.fault_latency);
  page.fetch_latency.copy_from(old.fetch_latency);
}

void forget_counted(StatPage& page) {
  for_each_counter([&](Counter counter) { page.counters.set(counter, 0); });
  for (auto& thread : page.inside.runtime_threads) thread.store(0, std::memory_order_relaxed);
  page.fault_latency.clear();
  page.fetch_latency.clear();
}

void describe(StatPage& page, const char* program) {
  const char* slash = std::strrchr(program, '/');
  page.version = kStatPageVersion;
  page.pid = getpid();
  page.start_time_ticks = process_start_ticks(getpid());
  page.namespaces = own_namespaces();
  page.started_ns = now_ns();
  copy_text(page.program, sizeof page.program, slash != nullptr ? slash + 1 : program);
  // release: pairs with the readers' acquire of magic; what is above is theirs to read once they see it
  page.magic.store(StatPage::kMagic, std::memory_order_release);
}

}  // namespace

void LatencyHistogram::copy_from(const LatencyHistogram& other) { copy_relaxed(other.buckets_, buckets_); }

void LatencyHistogram::clear() {
  for (auto& bucket : buckets_) bucket.store(0, std::memory_order_relaxed);
}

// relaxed: independent counters; a sample added meanwhile may or may not be seen
std::uint64_t LatencyHistogram::count() const {
  std::uint64_t samples = 0;
  for (const auto& bucket : buckets_) samples += bucket.load(std::memory_order_relaxed);
  return samples;
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i)
    buckets_[i].fetch_add(other.buckets_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void LatencyHistogram::subtract(const LatencyHistogram& earlier) {
  for (std::size_t i = 0; i < kBuckets; ++i) {
    std::uint64_t now = buckets_[i].load(std::memory_order_relaxed);
    std::uint64_t before = earlier.buckets_[i].load(std::memory_order_relaxed);
    buckets_[i].store(now > before ? now - before : 0, std::memory_order_relaxed);
  }
}

std::uint64_t LatencyHistogram::percentile_ns(double share) const {
  std::uint64_t samples = count();
  if (samples == 0) return 0;
  // The page may be another's, with any counts: what rounds up beyond 64 bits is all of them.
  double exact = share * static_cast<double>(samples) + 0.999999;
  std::uint64_t wanted = exact < 0x1p64 ? static_cast<std::uint64_t>(exact) : samples;
  if (wanted == 0) wanted = 1;
  std::uint64_t seen = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    std::uint64_t here = buckets_[i].load(std::memory_order_relaxed);
    if (here != 0) last = i;
    seen += here;
    if (seen >= wanted) return upper_edge_ns(i);
  }
  return upper_edge_ns(last);
}

std::uint64_t LatencyHistogram::sum_ns() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    const std::uint64_t here = buckets_[i].load(std::memory_order_relaxed);
    if (here != 0) sum += here * upper_edge_ns(i);
  }
  return sum;
}

// Bucket 0 is everything below 64 ns; from there each power of two has eight buckets of equal width.
std::size_t LatencyHistogram::bucket_of(std::uint64_t ns) {
  if (ns < 64) return 0;
  auto exponent = static_cast<unsigned>(std::bit_width(ns)) - 1;
  std::size_t eighth = (ns >> (exponent - 3)) & 7;
  std::size_t bucket = 1 + (exponent - 6) * 8 + eighth;
  return bucket < kBuckets ? bucket : kBuckets - 1;
}

std::uint64_t LatencyHistogram::upper_edge_ns(std::size_t bucket) {
  if (bucket == 0) return 64;
  std::size_t exponent = 6 + (bucket - 1) / 8;
  std::uint64_t eighths = 8 + (bucket - 1) % 8 + 1;
  return eighths << (exponent - 3);
}

// relaxed: changed only at start and in a forked child, before other threads run
StatPage* stat_page() { return g_page.load(std::memory_order_relaxed); }

void note_runtime_thread() {
  auto self = static_cast<std::int32_t>(raw::checked(SYS_gettid));
  for (auto& thread : stat_page()->inside.runtime_threads) {
    std::int32_t none = 0;
    if (thread.compare_exchange_strong(none, self)) return;
  }
}

std::uint64_t process_start_ticks(pid_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  int file = error_or(raw::checked(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (file < 0) return 0;
  char text[1024];
  long used = raw::checked(SYS_read, file, text, sizeof text - 1);
  raw::checked(SYS_close, file);
  if (used <= 0) return 0;
  text[used] = '\0';
  // The name in field 2 may hold spaces and parentheses: count from the last one.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::strtoull(at + 1, nullptr, 10) : 0;
}

std::uint64_t own_namespaces() {
  return namespace_number("/proc/self/ns/pid") << 32 | namespace_number("/proc/self/ns/time");
}

int open_stat_page(const char* program) {
  StatPage* old = stat_page();
  bool same_process = g_owner == 0 || g_owner == getpid();
  g_owner = getpid();
  g_shared = false;
  if (same_process) {
    statistics_directory(g_directory, sizeof g_directory);
    g_keep = std::getenv("HINTERLAND_STAT_KEEP") != nullptr;
  }
  StatPage* page = nullptr;
  int result = create_shared_page(&page);
  if (result < 0) {
    page = &g_private_page;
    if (!same_process) forget_counted(*page);
  }
  if (old != page) carry_over(*old, *page, same_process);
  describe(*page, program);
  g_page.store(page, std::memory_order_relaxed);
  if (old != &g_private_page && old != page) raw::checked(SYS_munmap, old, kPageBytes);
  return result;
}

void close_stat_page() {
  // A forked child that opened no page of its own still sees its parent's: that one is not over.
  if (g_owner != getpid()) return;
  stat_page()->ended_ns.store(now_ns(), std::memory_order_relaxed);
  if (!g_shared || g_keep) return;
  int directory = open_statistics_folder(AT_FDCWD, g_directory, false);
  if (directory < 0) return;
  char name[32];
  statistics_file_name(name, sizeof name, g_owner);
  raw::checked(SYS_unlinkat, directory, name, 0);
  raw::checked(SYS_close, directory);
}

}  // namespace hinterland
